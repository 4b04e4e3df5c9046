"""A replay without one answer fails with its commonest cause; one answer makes it a measurement."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from quantgate.replay.nothing_answered import refuse_nothing_answered
from quantgate_engine.errors import RunError

FAILED = {"status": "failed", "abort_cause": "error", "output_tokens": 3, "error": "It broke off."}
REFUSED = {"status": "rejected", "abort_cause": None, "output_tokens": 0, "error": "Too many."}
WAITED = {"status": "aborted", "abort_cause": "timeout", "output_tokens": 0, "error": None}
LEFT = {"status": "aborted", "abort_cause": "disconnect", "output_tokens": 0, "error": None}
CUT = WAITED | {"output_tokens": 1}
FINISHED = {"status": "finished", "abort_cause": None, "output_tokens": 3, "error": None}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows))


def test_the_commonest_cause_is_told_with_its_number() -> None:
    with pytest.raises(RunError) as raised:
        refuse_nothing_answered(table(REFUSED, FAILED, WAITED, FAILED), None)
    assert str(raised.value) == (
        "None of the 4 requests was answered, on any arm; the commonest cause (2 of them): It broke off."
    )
    assert raised.value.exit_code == 3


def test_waiting_in_vain_is_a_cause_too() -> None:
    with pytest.raises(RunError, match="no token came before the client's patience ended"):
        refuse_nothing_answered(table(WAITED), 7.0)


def test_where_clients_wait_for_ever_it_was_the_engine_that_gave_up() -> None:
    with pytest.raises(RunError, match=r"before the engine gave the request up \(timeouts.request_s\)"):
        refuse_nothing_answered(table(WAITED), None)


@pytest.mark.parametrize("served", [FINISHED, LEFT, CUT])
def test_one_request_that_was_served_is_a_measurement(served: dict[str, Any]) -> None:
    refuse_nothing_answered(table(FAILED, served, REFUSED), None)


def test_nothing_asked_is_nothing_refused() -> None:
    refuse_nothing_answered(table(FAILED).slice(0, 0), None)
