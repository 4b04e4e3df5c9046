"""What can be found wrong, and what is known of the arms, before a model is loaded or a server is launched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quantgate.arms.config import BundledArmConfig
from quantgate.arms.tokenizer import RunTokenizer
from quantgate.bounds.device_limits import device_limits
from quantgate.progress import ProgressReporter
from quantgate.quantizing.preparing import prepare_builds
from quantgate.run.arms import ArmPlan
from quantgate.run.workload_phase import Traffic, read_traffic
from quantgate.store.results_folder import check_writable
from quantgate.suite import WorkloadConfig
from quantgate.traces.source_text import read_lines
from quantgate_engine.executor.kv_cache import context_limit
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.tokenizer import load_tokenizer
from quantgate_engine.quant.layer_schemes import find_schemes
from quantgate_kernels.roofline import DeviceLimits


@dataclass(frozen=True, slots=True)
class _Foreknown:
    """What every arm will say of itself; None where only a running server can."""

    tokenizer: RunTokenizer | None
    max_context_tokens: int | None


def traffic_before_loading(
    trace: Path, workload: WorkloadConfig, arms: ArmPlan, seed: int, results: Path, columns: Path | None = None
) -> Traffic:
    """The traffic of a run whose results can be written and whose arms, as far as they are described, exist.

    Raises ConfigurationError, ModelError or RunError.
    """
    check_writable(results)
    # Before a model is fetched for its tokenizer, which may take minutes.
    next(read_lines(trace), None)
    known = _foreknown(arms)
    return read_traffic(trace, workload, known.tokenizer, seed, known.max_context_tokens, columns)


def builds_prepared(plan: ArmPlan, progress: ProgressReporter) -> None:
    """Arms whose scheme quantizes the model by a recipe have their checkpoints in the cache afterwards.

    That takes minutes at the first time, and so comes when everything else is known to be right.
    """
    bundled = [arm for arm in plan.arms if isinstance(arm, BundledArmConfig)]
    prepare_builds([(arm.model or plan.model or "", arm.scheme) for arm in bundled], progress)


def measured_limits(plan: ArmPlan) -> DeviceLimits | None:
    """What this device does at most, measured while nothing else runs on it; None where no arm runs on this CPU.

    Raises ConfigurationError for a device that is not there, and for more threads than the engine would accept.
    """
    if not any(isinstance(arm, BundledArmConfig) for arm in plan.arms):
        return None
    engine = plan.engine.to_engine_config()
    return device_limits(engine.device, engine.threads)


def _foreknown(plan: ArmPlan) -> _Foreknown:
    bundled = [arm for arm in plan.arms if isinstance(arm, BundledArmConfig)]
    for arm in bundled:
        find_schemes(arm.scheme)
        if arm.model is not None:
            resolve_model(arm.model)
    if not bundled or plan.model is None:
        return _Foreknown(load_tokenizer(plan.tokenizer) if plan.tokenizer else None, None)
    config = plan.engine.to_engine_config()
    folder = resolve_model(plan.model).path
    limit = context_limit(config, read_decoder_config(folder).max_position_embeddings)
    return _Foreknown(load_tokenizer(str(folder)), limit)
