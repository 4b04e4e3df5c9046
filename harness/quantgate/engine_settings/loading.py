"""Engines loaded as their settings say: one, or several over one model behind a router."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate.engine_settings.engine import EngineSettings
from quantgate.progress import ProgressReporter
from quantgate.quantizing.preparing import preparation
from quantgate_engine import LLM
from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.quant.perturbation import WeightPerturbation
from quantgate_engine.router.over_model import pools_over
from quantgate_engine.router.router_core import RouterCore
from quantgate_engine.stepped_engine import SteppedEngine


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """llm: the loaded model. core: what serves requests with it, for an `AsyncLLM` to drive."""

    llm: LLM
    core: SteppedEngine


def load_engine(
    model: str,
    scheme: str | None,
    settings: EngineSettings,
    *,
    kv_dtype: KVDtypeName | None = None,
    perturbation: WeightPerturbation | None = None,
    progress: ProgressReporter | None = None,
) -> LoadedEngine:
    """scheme: None is as stored for a quantized checkpoint, else fp16. kv_dtype: in place of that of the settings.
    progress: told where the scheme first quantizes the model into the cache.

    Raises ModelError or ConfigurationError where the model, the scheme or a setting is wrong.
    """
    config = settings.to_engine_config(kv_dtype)
    llm = LLM(model, scheme, config, perturbation=perturbation, preparation=preparation(progress))
    if not settings.pools:
        return LoadedEngine(llm, llm.core)
    return LoadedEngine(llm, RouterCore(pools_over(llm, settings.to_pools(kv_dtype)), settings.router.to_engine()))
