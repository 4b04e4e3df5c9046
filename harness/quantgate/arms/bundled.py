"""Opens arms of the bundled engine: one engine each, all in this process, so that they can take turns."""

from __future__ import annotations

from quantgate.arms.config import BundledArmConfig
from quantgate.arms.opened_arm import OpenedArm
from quantgate.quality.bundled_engine import BundledEngineModel
from quantgate.replay.arms import ReplayArm
from quantgate.store.manifest import ModelManifest
from quantgate.targets.bundled_engine import BundledEngineTarget
from quantgate_engine import LLM, EngineConfig
from quantgate_engine.quant.perturbation import WeightPerturbation


def open_bundled_arm(
    arm: BundledArmConfig, model: str, engine: EngineConfig, perturbation: WeightPerturbation | None
) -> OpenedArm:
    """Raises ModelError or ConfigurationError where the model, the scheme or a setting is wrong."""
    llm = LLM(model, scheme=arm.scheme, config=engine, perturbation=perturbation)
    info = llm.info
    return OpenedArm(
        config=arm,
        replay=ReplayArm(arm.arm_id, arm.role, BundledEngineTarget(llm, arm_id=arm.arm_id, role=arm.role)),
        quality_model=BundledEngineModel(llm),
        tokenizer=llm.tokenizer,
        max_context_tokens=llm.max_context_tokens,
        model=ModelManifest(
            name=info.name,
            weights_sha256=info.weights_sha256,
            tokenizer_sha256=info.tokenizer_sha256,
            provenance=info.provenance,
        ),
    )
