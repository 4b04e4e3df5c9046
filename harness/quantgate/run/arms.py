"""Loads the arms of a suite: one engine per arm, all in this process, so that they can take turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from quantgate.progress import Advance
from quantgate.replay.arms import ReplayArm, with_aa_arm
from quantgate.store.manifest import ArmManifest, ModelManifest
from quantgate.suite import ArmConfig, EngineSettings
from quantgate.targets.bundled_engine import BundledEngineTarget
from quantgate_engine import LLM
from quantgate_engine.quant.perturbation import WeightPerturbation


@dataclass(frozen=True, slots=True)
class LoadedArms:
    """The engines by arm id (baseline and candidates) and the arms as they are replayed (the A/A arm included)."""

    engines: dict[str, LLM]
    replay_arms: tuple[ReplayArm, ...]
    baseline_id: str

    @property
    def baseline(self) -> LLM:
        return self.engines[self.baseline_id]

    @property
    def max_context_tokens(self) -> int:
        """Longest prompt plus output that every arm serves."""
        return min(llm.max_context_tokens for llm in self.engines.values())

    def manifests(self) -> list[ArmManifest]:
        """What was loaded, with the kernel paths that were taken so far."""
        return [_manifest(arm) for arm in self.replay_arms]

    def model_manifest(self) -> ModelManifest:
        info = self.baseline.info
        return ModelManifest(
            name=info.name,
            weights_sha256=info.weights_sha256,
            tokenizer_sha256=info.tokenizer_sha256,
            provenance=info.provenance,
        )


def load_arms(
    model: str,
    arms: Sequence[ArmConfig],
    engine: EngineSettings,
    *,
    aa: bool,
    perturbations: Mapping[str, WeightPerturbation],
    advance: Advance,
) -> LoadedArms:
    """Raises ModelError or ConfigurationError where the model, a scheme or a setting is wrong.

    aa: replay the baseline a second time, as the A/A arm.
    `perturbations` plants weight noise on arms by id, to prove that the verdict can say no.
    """
    engines = {}
    for loaded, arm in enumerate(arms, start=1):
        engines[arm.arm_id] = LLM(
            model,
            scheme=arm.scheme,
            config=engine.to_engine_config(),
            perturbation=perturbations.get(arm.arm_id),
        )
        advance(loaded, arm.arm_id)
    replay_arms = tuple(
        ReplayArm(arm.arm_id, arm.role, BundledEngineTarget(engines[arm.arm_id], arm_id=arm.arm_id, role=arm.role))
        for arm in arms
    )
    return LoadedArms(
        engines=engines,
        replay_arms=with_aa_arm(replay_arms) if aa else replay_arms,
        baseline_id=next(arm.arm_id for arm in arms if arm.role == "baseline"),
    )


def _manifest(arm: ReplayArm) -> ArmManifest:
    return ArmManifest.model_validate(asdict(arm.description))
