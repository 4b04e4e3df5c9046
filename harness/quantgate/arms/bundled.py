"""Opens arms of the bundled engine: one engine each, all in this process, so that they can take turns."""

from __future__ import annotations

from quantgate.arms.config import BundledArmConfig
from quantgate.arms.opened_arm import OpenedArm
from quantgate.bounds.decoder_work import decoder_work
from quantgate.engine_settings.engine import EngineSettings
from quantgate.engine_settings.loading import LoadedEngine, load_engine
from quantgate.quality.bundled_engine import BundledEngineModel
from quantgate.replay.arms import ReplayArm
from quantgate.replay.prefix_sharing import PrefixCache
from quantgate.store.manifest import ModelManifest
from quantgate.targets.bundled_engine import BundledEngineTarget
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.quant.perturbation import WeightPerturbation


def open_bundled_arm(
    arm: BundledArmConfig,
    model: str,
    engine: EngineSettings,
    perturbation: WeightPerturbation | None,
    timeout_s: float | None,
) -> OpenedArm:
    """model: the suite's, of which the arm's own model, if it has one, is a build. timeout_s: how long a client waits.

    Raises ModelError or ConfigurationError where the model, the scheme or a setting is wrong.
    """
    own = arm.model or model
    loaded = load_engine(own, arm.scheme, engine, kv_dtype=arm.kv_dtype, perturbation=perturbation)
    llm, info = loaded.llm, loaded.llm.info
    target = BundledEngineTarget(
        llm,
        arm_id=arm.arm_id,
        role=arm.role,
        core=loaded.core,
        timeout_s=timeout_s,
        notes=() if arm.model is None else (f"its weights are {info.name} (SHA-256 {info.weights_sha256[:12]})",),
        step_work=decoder_work(read_decoder_config(resolve_model(own).path), info),
        model=resolve_model(model).name,
    )
    return OpenedArm(
        config=arm,
        replay=ReplayArm(arm.arm_id, arm.role, target),
        quality_model=BundledEngineModel(llm),
        tokenizer=llm.tokenizer,
        # By the context alone: what the KV cache and its cap make of a request is what a run measures.
        max_context_tokens=llm.core.executor.max_context_tokens,
        model=ModelManifest(
            name=info.name,
            weights_sha256=info.weights_sha256,
            tokenizer_sha256=info.tokenizer_sha256,
            provenance=info.provenance,
        ),
        turn=target.turn,
        prefix_cache=_prefix_cache(loaded, engine),
    )


def _prefix_cache(loaded: LoadedEngine, engine: EngineSettings) -> PrefixCache:
    """Of several pools all together: how many blocks, and whether any of them shares."""
    caches = [pool.engine.cache for pool in engine.to_pools()] or [engine.to_engine_config().cache]
    return PrefixCache(
        block_tokens=loaded.llm.core.executor.block_size,
        blocks=loaded.core.num_kv_blocks,
        enabled=any(cache.prefix_sharing for cache in caches),
    )
