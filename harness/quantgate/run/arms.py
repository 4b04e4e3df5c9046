"""The arms of a run, opened: engines are loaded, servers are launched and probed, and all is given back at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from quantgate.arm_life.arm_host import ArmHost
from quantgate.arm_life.arm_server import ArmServer
from quantgate.arm_life.one_at_a_time import OneAtATime
from quantgate.arm_life.side_by_side import SideBySide
from quantgate.arms.bundled import open_bundled_arm
from quantgate.arms.config import BundledArmConfig, OpenAIArmConfig
from quantgate.arms.openai import open_openai_arm
from quantgate.arms.opened_arm import OpenedArm
from quantgate.arms.tokenizer import RunTokenizer
from quantgate.engine_settings.engine import EngineSettings
from quantgate.progress import ProgressReporter
from quantgate.quality.quality_model import QualityModel
from quantgate.quality.repeated_baseline import RepeatedBaseline
from quantgate.replay.arms import ReplayArm, with_aa_arm
from quantgate.replay.precise_timers import precise_loop
from quantgate.store.manifest import ArmManifest, ModelManifest
from quantgate.suite import AA_SUFFIX
from quantgate_engine.clock import Clock, MonotonicClock
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.model.tokenizer import load_tokenizer
from quantgate_engine.quant.perturbation import WeightPerturbation


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """Which arms a run has, before any is opened.

    one_at_a_time: the device holds one of them. request_timeout_s: how long a client waits; None: for ever.
    """

    arms: Sequence[BundledArmConfig | OpenAIArmConfig]
    model: str | None
    tokenizer: str | None
    engine: EngineSettings
    aa: bool
    one_at_a_time: bool = False
    request_timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class OpenedArms:
    """The arms by id and as they are replayed (the A/A arm included); `runner` is the event loop of the whole run.

    log_folder: what launched servers write, a file each; it is gone when the arms are closed. replay_notes: what the
    replay showed of an arm, by its id; it stays with the arm, however often its manifest is written.
    """

    arms: Mapping[str, OpenedArm]
    replay_arms: tuple[ReplayArm, ...]
    baseline_id: str
    host: ArmHost
    runner: asyncio.Runner
    clock: Clock
    log_folder: Path
    replay_notes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def baseline(self) -> OpenedArm:
        return self.arms[self.baseline_id]

    @property
    def tokenizer(self) -> RunTokenizer | None:
        """The one that all arms share (a run on unlike tokenizers is refused); None where nobody knows it."""
        return next((arm.tokenizer for arm in self.arms.values() if arm.tokenizer is not None), None)

    @property
    def max_context_tokens(self) -> int | None:
        """Longest prompt plus output that every arm serves, as far as they tell."""
        told = [arm.max_context_tokens for arm in self.arms.values() if arm.max_context_tokens is not None]
        return min(told, default=None)

    @property
    def can_force_lengths(self) -> bool:
        """For sure: an arm whose probe could not tell does not count."""
        return all(arm.honours_ignore_eos for arm in self.arms.values())

    @property
    def refusing_force(self) -> str | None:
        """The first arm that is known to end its answers where it likes; None where there is none."""
        return next((arm_id for arm_id, arm in self.arms.items() if arm.honours_ignore_eos is False), None)

    def manifests(self) -> list[ArmManifest]:
        """What was opened, with the kernel paths that were taken and the memory that was used so far."""
        return [self._manifest(arm) for arm in self.replay_arms]

    def _manifest(self, arm: ReplayArm) -> ArmManifest:
        manifest = ArmManifest.model_validate(asdict(arm.description))
        server = self.host.servers.get(arm.arm_id)
        changes: dict[str, Any] = {"notes": [*manifest.notes, *self.replay_notes.get(arm.arm_id, ())]}
        if server is not None:
            changes["peak_memory_bytes"] = server.peak_memory_bytes
            changes["load_seconds"] = server.load_seconds or manifest.load_seconds
        return manifest.model_copy(update=changes)

    def model_manifest(self) -> ModelManifest:
        return self.baseline.model

    def quality_models(self) -> dict[str, QualityModel]:
        """Every arm as the quality tiers see it; the A/A arm is the baseline asked in another way."""
        models = {arm_id: arm.quality_model for arm_id, arm in self.arms.items()}
        for arm in self.replay_arms:
            if arm.role == "aa":
                models[arm.arm_id] = RepeatedBaseline(models[self.baseline_id])
        return models

    def owner_of(self, arm_id: str) -> str:
        """The arm whose engine or server answers: the baseline's own for the A/A arm."""
        return arm_id if arm_id in self.arms else self.baseline_id


@contextmanager
def opened_arms(
    plan: ArmPlan,
    *,
    perturbations: Mapping[str, WeightPerturbation],
    keep_text: bool,
    progress: ProgressReporter,
) -> Iterator[OpenedArms]:
    """Opens every arm; what was launched is stopped when the block is left, however it is left.

    `perturbations` plants weight noise on bundled arms by id, to prove that the verdict can say no. keep_text: false
    keeps no log of a launched server, because it may hold prompts. Raises ModelError, ConfigurationError or RunError.
    """
    tokenizer = load_tokenizer(plan.tokenizer) if plan.tokenizer else None
    clock = MonotonicClock()
    with TemporaryDirectory(prefix="quantgate-servers-") as logs, asyncio.Runner(loop_factory=precise_loop) as runner:
        servers = _servers(plan, clock, Path(logs) if keep_text else None)
        host = OneAtATime(servers) if plan.one_at_a_time else SideBySide(servers)
        try:
            arms = {}
            with progress.phase("load", len(plan.arms)) as advance:
                for opened, arm in enumerate(plan.arms, start=1):
                    if isinstance(arm, OpenAIArmConfig):
                        runner.run(host.bring_up(arm.arm_id))
                        arms[arm.arm_id] = runner.run(open_openai_arm(arm, tokenizer, clock))
                    else:
                        arms[arm.arm_id] = _open_bundled(arm, plan, perturbations)
                    advance(opened, arm.arm_id)
            replay_arms = tuple(arm.replay for arm in arms.values())
            yield OpenedArms(
                arms=arms,
                replay_arms=with_aa_arm(replay_arms) if plan.aa else replay_arms,
                baseline_id=next(arm.arm_id for arm in plan.arms if arm.role == "baseline"),
                host=host,
                runner=runner,
                clock=clock,
                log_folder=Path(logs),
            )
        finally:
            runner.run(host.close())


def _servers(plan: ArmPlan, clock: Clock, log_folder: Path | None) -> dict[str, ArmServer]:
    servers = {
        arm.arm_id: ArmServer(
            arm.arm_id,
            arm,
            arm.launch,
            clock=clock,
            log_path=None if log_folder is None else log_folder / f"server-{arm.arm_id}.log",
        )
        for arm in plan.arms
        if isinstance(arm, OpenAIArmConfig)
    }
    for arm in plan.arms:
        if plan.aa and arm.role == "baseline" and arm.arm_id in servers:
            servers[arm.arm_id + AA_SUFFIX] = servers[arm.arm_id]
    return servers


def _open_bundled(arm: BundledArmConfig, plan: ArmPlan, perturbations: Mapping[str, WeightPerturbation]) -> OpenedArm:
    if plan.model is None:
        raise ConfigurationError(f"Arm {arm.arm_id} runs on the bundled engine and needs a model; name one.")
    return open_bundled_arm(
        arm, plan.model, plan.engine, perturbations.get(arm.arm_id), timeout_s=plan.request_timeout_s
    )
