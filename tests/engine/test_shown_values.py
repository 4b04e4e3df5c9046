"""Values in sentences: on one line, readable, and never longer than a sentence bears."""

from __future__ import annotations

import pytest
from tests.engine.pools import Pools, fast
from tests.engine.simulation import prompt

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.router.settings import PoolRule
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.slo_class import SLOClass
from quantgate_engine.shown import LONGEST_SHOWN, on_one_line, shown, shown_name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("main", "main"),
        ("Größe 2", "Größe 2"),
        ("", "''"),
        (" ", "' '"),
        ("a\nb", r"'a\nb'"),
        ("\u202e", r"'\u202e'"),
        ("\ud800", r"'\ud800'"),
    ],
)
def test_a_name_stands_as_it_is_unless_it_cannot_be_seen(name: str, text: str) -> None:
    assert shown_name(name) == text


def test_long_values_are_cut() -> None:
    for value in ("x" * 1000, tuple(range(5000)), 10**100, 16**5000, [16**5000]):
        assert len(shown(value)) <= LONGEST_SHOWN
    assert shown(16**5000) == "a number of too many digits to write out"
    assert len(shown_name("x" * 1000)) == LONGEST_SHOWN


def test_words_of_others_take_one_line() -> None:
    assert on_one_line("it isn't\nso\u202e", 100) == r"it isn't\nso\u202e"
    assert on_one_line("x" * 100, 10) == "xxxxxxx..."


def test_one_wrong_entry_of_thousands_is_one_short_sentence() -> None:
    with pytest.raises(ConfigurationError) as refused:
        BatchingSettings(length_buckets=(*range(5000, 0, -1),))
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 81, "\u202e"])
def test_a_class_has_a_name_that_tables_can_show(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"SLOClass\.name is .*; expected a name of 1 to 80 printable"):
        SLOClass(name)


def test_a_request_is_named_on_one_line_whatever_its_id() -> None:
    pools = Pools(fast(rule=PoolRule(slo_classes=("batch",))))
    request = pools.core.add_request("a\nb", prompt(4), SamplingParams(max_tokens=2))
    pools.run()
    assert request.error is not None
    assert request.error.startswith(r"Request 'a\nb' was rejected: no pool takes class interactive")


def test_settings_that_do_not_go_together_are_told_with_both() -> None:
    with pytest.raises(ConfigurationError, match=r"max_step_tokens is 3; expected at least max_active_requests \(16\)"):
        EngineConfig(max_step_tokens=3)
    with pytest.raises(ConfigurationError, match=r"max_active_requests is 2; expected at least 3, the places"):
        EngineConfig(max_active_requests=2, batching=BatchingSettings(slo_classes=(SLOClass("a", reserved_active=3),)))
