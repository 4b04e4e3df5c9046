"""Pools over one loaded model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.llm import LLM
from quantgate_engine.router.pool import Pool
from quantgate_engine.router.settings import PoolSettings, check_pools
from quantgate_engine.setting_checks import require

_SETTINGS = tuple(field.name for field in fields(EngineConfig))
_SETTLED_AT_LOADING = ("threads", "kernel_set", "deterministic", "kv_dtype")


def pools_over(llm: LLM, settings: Sequence[PoolSettings]) -> tuple[Pool, ...]:
    """A pool for each of the settings, all over the weights of `llm`, each with a KV cache of its own.

    The first pool is served by the engine of `llm` itself, which must have been loaded with that pool's engine
    settings: so no cache lies idle. A pool that names no `max_context_tokens` takes the longest that `llm` does.
    Raises ConfigurationError where a pool asks for what was settled otherwise when the model was loaded, and where a
    cache does not fit into the memory that the pools before it leave.
    """
    check_pools(settings)
    first, *others = settings
    if first.engine != llm.config:
        unlike = [name for name in _SETTINGS if getattr(first.engine, name) != getattr(llm.config, name)]
        raise ConfigurationError(
            f"The engine settings of the first pool, {first.name}, are not those that the model was loaded with "
            f"(they differ in {', '.join(unlike)}); load it with the first pool's settings."
        )
    beside = [replace(pool, engine=_over_the_same(llm, pool)) for pool in others]
    return Pool(first, llm.core), *(_beside(llm, pool) for pool in beside)


def _beside(llm: LLM, pool: PoolSettings) -> Pool:
    try:
        return Pool(pool, llm.engine_beside(pool.engine))
    except ConfigurationError as too_large:
        raise ConfigurationError(f"Pool {pool.name} does not fit beside those before it. {too_large}") from too_large


def _over_the_same(llm: LLM, pool: PoolSettings) -> EngineConfig:
    for field in _SETTLED_AT_LOADING:
        settled = getattr(llm.config, field)
        require(
            getattr(pool.engine, field) == settled,
            f"EngineConfig.{field} of pool {pool.name}",
            getattr(pool.engine, field),
            f"{settled!r}, as for the first pool: pools share one loaded model",
        )
    # The context alone: this pool has a KV cache of its own, which may be larger than the first pool's.
    settled = llm.core.executor.max_context_tokens
    longest = pool.engine.max_context_tokens or settled
    require(
        longest <= settled,
        f"EngineConfig.max_context_tokens of pool {pool.name}",
        longest,
        f"at most {settled}, the first pool's; let the first pool take the longest contexts",
    )
    return replace(pool.engine, max_context_tokens=longest)
