"""An EngineCore over the remembering executor, for the tests of sharing, preemption, sessions and admission."""

from __future__ import annotations

from typing import Any

from tests.engine.remembering_executor import RememberingExecutor, attended_tokens

from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.request import Request, RequestState
from quantgate_engine.request_terms import DEFAULT_TERMS, RequestTerms
from quantgate_engine.sampling_params import SamplingParams


class CachedEngine:
    """`settings` are fields of EngineConfig."""

    def __init__(self, *, num_blocks: int = 64, block_size: int = 4, **settings: Any) -> None:
        fields = {"max_active_requests": 4, "max_step_tokens": 16, "max_overtakes": 3} | settings
        self.config = EngineConfig(block_size=block_size, **fields)
        self.clock = VirtualClock()
        self.executor = RememberingExecutor(self.clock, num_blocks, block_size, self.config.preemption.host_blocks)
        self.core = EngineCore(self.executor, self.config, self.clock)
        self.ended: dict[str, Request] = {}

    def add(
        self,
        request_id: str,
        prompt: tuple[int, ...],
        max_tokens: int,
        terms: RequestTerms = DEFAULT_TERMS,
        seed: int = 0,
    ) -> Request:
        return self.core.add_request(request_id, prompt, SamplingParams(max_tokens=max_tokens, seed=seed), terms)

    def step(self, count: int = 1) -> list[str]:
        """Steps, checks the books, and names those that ended."""
        names: list[str] = []
        for _ in range(count):
            ended = self.core.step().ended
            self.core.check_integrity()
            names.extend(request.request_id for request in ended)
            for request in ended:
                self.ended[request.request_id] = request
        return names

    def run(self, max_steps: int = 5000) -> dict[str, Request]:
        """Steps until nothing is left; what finished must be right to the token."""
        for _ in range(max_steps):
            if not self.core.has_work:
                break
            self.step()
        assert not self.core.has_work
        for request in self.ended.values():
            if request.state is RequestState.FINISHED:
                assert_right(request)
        return self.ended


def assert_right(request: Request) -> None:
    want = attended_tokens(request.prompt_token_ids, len(request.output), request.params.seed)
    assert request.output_token_ids == want
