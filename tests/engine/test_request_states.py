"""The table of a request's moves, arrow by arrow."""

from __future__ import annotations

import itertools

import pytest

from quantgate_engine.executor.base import SampledToken
from quantgate_engine.request import IllegalTransitionError, Request, RequestState
from quantgate_engine.sampling_params import SamplingParams

WAITING, PREFILL, DECODING = RequestState.WAITING, RequestState.PREFILL, RequestState.DECODING
FINISHED, ABORTED, REJECTED = RequestState.FINISHED, RequestState.ABORTED, RequestState.REJECTED

ARROWS = {
    (WAITING, PREFILL),
    (WAITING, REJECTED),
    (WAITING, ABORTED),
    (WAITING, FINISHED),
    (PREFILL, DECODING),
    (PREFILL, FINISHED),
    (PREFILL, WAITING),
    (PREFILL, ABORTED),
    (DECODING, FINISHED),
    (DECODING, WAITING),
    (DECODING, ABORTED),
}


def _request(state: RequestState) -> Request:
    return Request("r", (1, 2, 3), SamplingParams(), arrived_ns=0, state=state)


@pytest.mark.parametrize(("origin", "target"), list(itertools.product(RequestState, RequestState)))
def test_exactly_the_arrows_of_the_design_are_allowed(origin: RequestState, target: RequestState) -> None:
    request = _request(origin)
    if (origin, target) in ARROWS:
        request.transition(target)
        assert request.state is target
    else:
        with pytest.raises(IllegalTransitionError, match=f"from {origin.value} to {target.value}"):
            request.transition(target)
        assert request.state is origin


def test_the_next_tokens_run_over_the_seam_of_prompt_and_output() -> None:
    request = _request(PREFILL)
    request.output = [SampledToken(7), SampledToken(8)]
    for computed in range(6):
        request.num_computed_tokens = computed
        for count in range(6 - computed):
            assert request.next_token_ids(count) == (1, 2, 3, 7, 8)[computed : computed + count]
    request.num_computed_tokens = 2
    assert request.num_uncomputed_tokens == 3
