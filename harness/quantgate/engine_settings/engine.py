"""The bundled engine's settings: a suite's `engine`, and the file of `--engine`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import Field

from quantgate.engine_settings.group import Group, Places, places_of
from quantgate.engine_settings.pools import PoolEntry, PoolFields, RouterGroup
from quantgate.locations import Location
from quantgate.placed_error import PlacedError
from quantgate_engine.config import EngineConfig
from quantgate_engine.device_name import DeviceName
from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.router.settings import PoolSettings, check_pools
from quantgate_engine.setting_checks import SettingError
from quantgate_engine.shown import shown_name
from quantgate_kernels.kernel_set_names import KernelSetName

_ENGINE = EngineConfig()


class EngineSettings(PoolFields, Group):
    """See `quantgate_engine.config.EngineConfig`. With `pools`, what is said beside them holds for all of them."""

    made_into = EngineConfig

    kv_dtype: KVDtypeName = _ENGINE.kv_dtype
    deterministic: bool = _ENGINE.deterministic
    device: DeviceName = _ENGINE.device
    cuda_graphs: bool = _ENGINE.cuda_graphs
    threads: int | None = Field(_ENGINE.threads, ge=1)
    kernel_set: KernelSetName = _ENGINE.kernel_set
    pools: tuple[PoolEntry, ...] = Field((), strict=False)
    router: RouterGroup = RouterGroup()

    def require_usable(self) -> None:
        """Raises PlacedError; with pools, what stands beside them is no engine of its own and need not make one."""
        if self.pools:
            self._require_usable_pools()
            return
        if "pools" in self.model_fields_set:
            raise PlacedError((("pools",), "expected at least one pool, got none; add one, or remove this key"))
        if "router" in self.model_fields_set:
            raise PlacedError((("router",), "expected pools beside it to route between; add them, or remove this key"))
        super().require_usable()

    def _require_usable_pools(self) -> None:
        pools = []
        for position, pool in enumerate(self.pools):
            place: Location = ("pools", position)
            try:
                engine = self._with_pool(pool)._config(None)
            except SettingError as error:
                raise PlacedError(*_in_pool_or_beside(places_of(error), place, pool.name)) from None
            try:
                pools.append(pool.to_settings(engine))
            except SettingError as error:
                raise PlacedError(*_within(place, places_of(error))) from None
        try:
            check_pools(pools)
        except SettingError as error:
            raise PlacedError(*_within(("pools",), places_of(error))) from None

    def as_recorded(self) -> dict[str, Any]:
        """The settings that the engine runs with, as JSON values: a document that sets the same up again.

        Each pool has all of its settings in it, those that it takes from beside the pools too.
        """
        document = self.model_dump(mode="json")
        if not self.pools:
            return {name: value for name, value in document.items() if name not in ("pools", "router")}
        for pool, entry in zip(self.pools, document["pools"], strict=True):
            entry["engine"] = self._with_pool(pool).model_dump(mode="json", include=set(PoolFields.model_fields))
        return document

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


def _within(place: Location, places: Places) -> Places:
    return tuple((place + location, message) for location, message in places)


def _in_pool_or_beside(places: Places, place: Location, name: str) -> Places:
    """A pool's engine is made of what the pool says and, else, of what stands beside the pools."""
    beside = tuple((location, f"pool {shown_name(name)}: {places[-1][1]}") for location, _ in places)
    return (*_within((*place, "engine"), places[:-1]), *beside)
