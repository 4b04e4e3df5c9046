"""The settings that the bundled engine ran with, all of them, pool by pool where it has pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, significant
from quantgate.report.run_view import RunView
from quantgate.store.manifest import ArmManifest
from quantgate.targets.base import BUNDLED_ENGINE

_UNLIMITED = "no limit"
_UNSET = {
    "num_kv_blocks": "as many as all active requests may need",
    "max_context_tokens": "the model's own limit",
    "threads": "the library's default",
    "waiting_requests": "do not count",
    "held_share": "does not count",
}
"""What a setting without a value means; else that nothing limits it."""


def engine_settings_table(view: RunView) -> Table | None:
    """One column for the engine, or one for each of its pools; None where no arm ran on the bundled engine.

    All arms have the same settings, except for the precision of the KV cache, which an arm may have of its own.
    """
    recorded = _recorded(view)
    if recorded is None:
        return None
    shared = {name: value for name, value in recorded.items() if name not in ("pools", "kv_dtype")}
    pools = recorded.get("pools") or []
    columns = [dict(_flattened(shared | _of_pool(pool))) for pool in pools] or [dict(_flattened(shared))]
    settings = dict.fromkeys(setting for column in columns for setting in column)
    stored_as = ", ".join(f"{arm.arm_id}: {arm.manifest.kv_dtype}" for arm in view.arms if _is_bundled(arm.manifest))
    return Table(
        ["setting", *([f"pool {pool['name']}" for pool in pools] or ["value"])],
        [
            ["KV cache stored as", *[stored_as] * len(columns)],
            *([setting, *(column.get(setting, NOTHING) for column in columns)] for setting in settings),
        ],
    )


def _recorded(view: RunView) -> Mapping[str, Any] | None:
    manifest = view.run.manifest
    engine = manifest.engine or (manifest.suite or {}).get("engine")
    return engine if isinstance(engine, dict) and any(map(_is_bundled, manifest.arms)) else None


def _is_bundled(arm: ArmManifest) -> bool:
    return arm.target == BUNDLED_ENGINE


def _of_pool(pool: Mapping[str, Any]) -> dict[str, Any]:
    """A pool's own settings as the engine's are named, and how requests come to it."""
    routing = {name: value for name, value in pool.items() if name not in ("name", "engine")}
    return {**pool.get("engine", {}), "pool": routing}


def _flattened(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _written(name, value)


def _written(name: str, value: Any) -> str:
    match value:
        case None:
            return "none" if name == "spill" else _UNSET.get(name, _UNLIMITED)
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return significant(value)
        case list():
            return "; ".join(_item(item) for item in value) or ("any" if name == "slo_classes" else "none")
        case _:
            return str(value)


def _item(item: Any) -> str:
    """An entry of a list; of a group of settings with a name, what is said of it."""
    if not isinstance(item, dict):
        return _written("", item)
    said = ", ".join(f"{key} {_written(key, value)}" for key, value in item.items() if key != "name")
    return f"{item.get('name', '')} ({said})"
