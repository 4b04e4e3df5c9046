"""The bundled engine's settings: a suite's `engine`, and the file of `--engine`."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from pydantic import Field, model_validator

from quantgate.engine_settings.group import Group
from quantgate.engine_settings.pools import PoolEntry, PoolFields, RouterGroup
from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.router.settings import PoolSettings, check_pools
from quantgate_kernels.kernel_set_names import KernelSetName

_ENGINE = EngineConfig()


class EngineSettings(PoolFields, Group):
    """See `quantgate_engine.config.EngineConfig`. With `pools`, what is said beside them holds for all of them."""

    made_into = EngineConfig

    kv_dtype: KVDtypeName = _ENGINE.kv_dtype
    deterministic: bool = _ENGINE.deterministic
    threads: int | None = Field(_ENGINE.threads, ge=1)
    kernel_set: KernelSetName = _ENGINE.kernel_set
    pools: tuple[PoolEntry, ...] = Field((), strict=False)
    router: RouterGroup = RouterGroup()

    @model_validator(mode="after")
    def _pools_go_together(self) -> Self:
        if self.pools:
            try:
                check_pools(self.to_pools())
            except ConfigurationError as error:
                raise ValueError(str(error)) from None
        return self

    def to_engine_config(self, kv_dtype: KVDtypeName | None = None) -> EngineConfig:
        """What the model is loaded with: the first pool's settings, where there are pools.

        kv_dtype: an arm's own, in place of the one that all arms share.
        """
        pools = self.to_pools(kv_dtype)
        return pools[0].engine if pools else self._config(kv_dtype)

    def to_pools(self, kv_dtype: KVDtypeName | None = None) -> tuple[PoolSettings, ...]:
        """The pools' settings; none where one engine serves everything. A group that a pool states stands whole."""
        return tuple(pool.to_settings(self._with_pool(pool)._config(kv_dtype)) for pool in self.pools)

    def _with_pool(self, pool: PoolEntry) -> EngineSettings:
        stated = pool.engine.model_fields_set
        return self.model_copy(update={name: getattr(pool.engine, name) for name in stated})

    def _config(self, kv_dtype: KVDtypeName | None) -> EngineConfig:
        config: EngineConfig = self.to_engine()
        return config if kv_dtype is None else replace(config, kv_dtype=kv_dtype)
