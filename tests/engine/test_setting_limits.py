"""Settings of the wrong type, and numbers that no clock or queue could carry, are refused by name."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest
from tests.engine.cached_engine import CachedEngine

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.holding import HoldingLimits
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings
from quantgate_engine.scheduler.slo_class import SLOClass
from quantgate_engine.setting_checks import MAX_COUNT, MAX_SECONDS
from quantgate_engine.timeouts import TimeoutSettings

GROUPS: dict[type, dict[str, Any]] = {
    EngineConfig: {},
    BatchingSettings: {},
    SLOClass: {"name": "a"},
    AdmissionSettings: {},
    CacheSettings: {"prefix_sharing": True},
    PreemptionSettings: {},
    TimeoutSettings: {},
    HoldingLimits: {},
    Caps: {"max_context_tokens": 8, "max_active_requests": 1},
    RequestTerms: {},
}
FIELDS = [(group, field.name) for group in GROUPS for field in fields(group)]


class _Foreign:
    """No setting is of this type."""


@pytest.mark.parametrize(("group", "name"), FIELDS, ids=lambda part: getattr(part, "__name__", part))
@pytest.mark.parametrize(
    "value",
    [_Foreign(), math.nan, math.inf, 1e300, 10**5000, [3], b"x"],
    ids=["object", "nan", "inf", "huge", "digits", "list", "bytes"],
)
def test_every_setting_refuses_what_it_cannot_use_by_its_name(group: type, name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{group.__name__}\.{name} is .*; expected .*\.$") as raised:
        group(**{**GROUPS[group], name: value})
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        (EngineConfig, "max_active_requests", "3"),
        (EngineConfig, "max_active_requests", 2.5),
        (EngineConfig, "max_active_requests", None),
        (EngineConfig, "threads", True),
        (EngineConfig, "deterministic", "no"),
        (EngineConfig, "batching", CacheSettings()),
        (EngineConfig, "max_overtakes", MAX_COUNT + 1),
        (AdmissionSettings, "past_answers", MAX_COUNT + 1),
        (AdmissionSettings, "max_wait_s", MAX_SECONDS * 2),
        (BatchingSettings, "chunked_prefill", 1),
        (BatchingSettings, "slo_classes", ()),
        (RequestTerms, "cache_salt", "\ud800"),
        (RequestTerms, "fork_of", ["x"]),
        (RequestTerms, "timeout_s", True),
    ],
)
def test_what_only_looks_right_is_refused_too(group: type, name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{group.__name__}\.{name} is "):
        group(**{**GROUPS[group], name: value})


def test_items_of_a_list_are_told_by_their_place() -> None:
    with pytest.raises(ConfigurationError, match=r"^BatchingSettings\.length_buckets\.1 is 2\.5; expected a whole"):
        BatchingSettings(length_buckets=(1, 2.5))  # type: ignore[arg-type]  # as a caller without types may
    with pytest.raises(ConfigurationError, match=r"^RequestTerms\.turn_starts\.0 is '0'; expected a whole number"):
        RequestTerms(turn_starts=("0",))  # type: ignore[arg-type]  # as a caller without types may


def test_the_largest_numbers_that_are_allowed_can_be_used() -> None:
    engine = CachedEngine(
        max_overtakes=MAX_COUNT,
        admission=AdmissionSettings(estimator="past-future", past_answers=MAX_COUNT, max_wait_s=MAX_SECONDS),
        batching=BatchingSettings(slo_classes=(SLOClass("a", max_wait_s=MAX_SECONDS),)),
        cache=CacheSettings(prefix_sharing=True, session_seconds=MAX_SECONDS),
        timeouts=TimeoutSettings(request_s=MAX_SECONDS, drain_s=MAX_SECONDS),
    )
    engine.add("a", (1, 2, 3), max_tokens=2)
    engine.run()
    engine.core.shut_down(drain=True)
    engine.core.step()
    assert engine.core.totals.steps > 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3", "a number of seconds above 0, or None"),
        (0, "above 0, or None"),
        (math.nan, "above 0, or None"),
        (math.inf, "at most 1,000,000,000 seconds, or None"),
    ],
)
def test_durations_say_what_is_wrong_with_them(value: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        RequestTerms(timeout_s=value)
    assert str(raised.value) == f"RequestTerms.timeout_s is {value!r}; expected {expected}."
