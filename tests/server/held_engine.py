"""An engine that stands in the middle of a step for as long as a test wants."""

from __future__ import annotations

import threading
from typing import Any

from tests.server.running import LIMIT_S

from quantgate_engine import LLM


class HeldEngine:
    """Holds the engine in its steps until it is let go, so that a request stands where the test wants it."""

    def __init__(self, llm: LLM) -> None:
        self._open = threading.Event()
        self.entered = threading.Event()
        self._execute = llm.core.executor.execute
        llm.core.executor.execute = self

    def __call__(self, sequences: Any) -> Any:
        self.entered.set()
        assert self._open.wait(LIMIT_S)
        return self._execute(sequences)

    def release(self) -> None:
        self._open.set()
