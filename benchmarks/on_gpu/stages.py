"""What the script does one after the other; a stage that fails says so, and the others go on."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.on_gpu.check_attention import attention_checks, rotation_checks
from benchmarks.on_gpu.check_products import product_checks
from benchmarks.on_gpu.check_rows import row_checks
from benchmarks.on_gpu.checked import Check, check_all
from benchmarks.on_gpu.engine_layout import engine_layout
from benchmarks.on_gpu.engine_speed import SCHEMES, engine_speeds
from benchmarks.on_gpu.limits import measured_limits
from benchmarks.on_gpu.llama import VOCABULARY
from benchmarks.on_gpu.place import Place
from benchmarks.on_gpu.stopwatch import Stopwatch
from benchmarks.on_gpu.time_attention import attention_cases
from benchmarks.on_gpu.time_products import conversion_cases, product_cases
from benchmarks.on_gpu.time_rows import row_cases
from benchmarks.on_gpu.timed import Case, time_all

from quantgate_kernels.roofline import DeviceLimits

Rows = list[dict[str, Any]]

DONE, FAILED, SKIPPED = "done", "failed", "skipped"
LIMITS = "limits"


@dataclass(frozen=True, slots=True)
class Session:
    """limits: None before they were measured, and where nothing runs."""

    place: Place
    limits: DeviceLimits | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """seconds: that it is expected to take on a GPU, so that one which would pass the budget is not begun."""

    name: str
    seconds: float
    run: Callable[[Session], Rows]


def stages() -> list[Stage]:
    return [
        Stage(LIMITS, 10, _limits),
        Stage("check rows", 20, _checks(_checks_of_rows)),
        Stage("check products", 60, _checks(lambda: product_checks(rows=(1, 16, 17, 200), shapes=((1024, 4096),)))),
        Stage("check attention", 50, _checks(_checks_of_attention)),
        Stage("time products", 60, _times(product_cases)),
        Stage("time attention", 40, _times(attention_cases)),
        Stage("time rows", 30, _times(lambda: [*row_cases(), *conversion_cases()])),
        *(Stage(f"engine {scheme}", 45, _engine(scheme)) for scheme in SCHEMES),
    ]


def outcome_of(stage: Stage, session: Session) -> dict[str, Any]:
    """As the document has it: its rows, or why there are none."""
    began = time.monotonic()
    try:
        result: dict[str, Any] = {"outcome": DONE, "rows": stage.run(session)}
    except Exception as failure:  # noqa: BLE001 (whatever it is, the other stages can still tell something)
        trace = "".join(traceback.format_exception(failure, limit=-6))
        result = {"outcome": FAILED, "error": f"{type(failure).__name__}: {failure}", "trace": trace, "rows": []}
    return {**result, "seconds": round(time.monotonic() - began, 1)}


def with_limits(session: Session, outcome: Mapping[str, Any]) -> Session:
    """outcome: of the stage that measures them."""
    rows = outcome["rows"]
    return replace(session, limits=DeviceLimits(**rows[0])) if rows and not session.place.dry else session


def _limits(session: Session) -> Rows:
    if session.place.dry:
        return []
    place = session.place
    seconds = Stopwatch(place.torch_device).seconds
    return [asdict(measured_limits(place.torch_device, place.processors, seconds))]


def _checks_of_rows() -> Iterable[Check]:
    yield from row_checks(rows=(3, 200), sizes=(128, 4096), vocabulary=VOCABULARY)
    yield from rotation_checks(rows=(5, 200))


def _checks_of_attention() -> Iterable[Check]:
    return attention_checks(decodes=(1, 17, 300, 1500), prompts=((5, 5), (300, 300), (200, 33)))


def _checks(checks: Callable[[], Iterable[Check]]) -> Callable[[Session], Rows]:
    return lambda session: [asdict(checked) for checked in check_all(checks(), session.place)]


def _times(cases: Callable[[], Iterable[Case]]) -> Callable[[Session], Rows]:
    def run(session: Session) -> Rows:
        stopwatch = None if session.place.dry else Stopwatch(session.place.torch_device)
        timed = time_all(cases(), session.place, session.limits, stopwatch)
        return [{**asdict(one), "share": one.share, "times_torch": one.times_torch} for one in timed]

    return run


def _engine(scheme: str) -> Callable[[Session], Rows]:
    def run(session: Session) -> Rows:
        if session.place.dry:
            speeds, kernels = engine_layout(scheme, session.place)
            return [{**asdict(speed), "kernels": kernels} for speed in speeds]
        return [asdict(speed) for speed in engine_speeds(scheme, session.place.torch_device, session.limits)]

    return run


def chosen(names: Sequence[str] | None) -> list[Stage]:
    """Those whose names begin with one of `names`. Raises ValueError where no name begins with one of them."""
    every = stages()
    if not names:
        return every
    for name in names:
        if not any(stage.name.startswith(name) for stage in every):
            raise ValueError(f"no stage begins with {name!r}; there are {', '.join(stage.name for stage in every)}")
    return [stage for stage in every if stage.name == LIMITS or stage.name.startswith(tuple(names))]
