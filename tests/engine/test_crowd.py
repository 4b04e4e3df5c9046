"""The expected peak of several requests, against the formula spelled out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quantgate_engine.request import Request
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.crowd import Crowd, ExpectingCrowd

ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=12)


def _request(row: tuple[int, int]) -> Request:
    """Of (tokens left, tokens there); what is left is kept in max_tokens, one more because that cannot be 0."""
    left, tokens = row
    return Request("r", tuple(range(tokens)), SamplingParams(max_tokens=left + 1), arrived_ns=0)


def _left(request: Request) -> int:
    return request.params.max_tokens - 1


def _peak(rows: list[tuple[int, int]]) -> int:
    ordered = sorted(rows, reverse=True)
    held = [sum(tokens for _, tokens in ordered[:ended]) for ended in range(1, len(ordered) + 1)]
    return max(held[place] + (place + 1) * left for place, (left, _) in enumerate(ordered))


@given(running=ROWS, joining=ROWS, candidate=st.tuples(st.integers(0, 9), st.integers(1, 9)))
def test_the_peak_is_that_of_the_formula(
    running: list[tuple[int, int]], joining: list[tuple[int, int]], candidate: tuple[int, int]
) -> None:
    crowd = ExpectingCrowd(map(_request, running), _left)
    for row in joining:
        crowd.add(_request(row))
    assert crowd.size == len(running) + len(joining)
    assert crowd.peak_with(_request(candidate)) == _peak([*running, *joining, candidate])


def test_where_promises_tell_all_nothing_is_expected() -> None:
    crowd = Crowd([_request((5, 5))])
    crowd.add(_request((5, 5)))
    assert (crowd.size, crowd.peak_with(_request((9, 9)))) == (2, 0)
