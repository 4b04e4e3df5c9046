"""An executor whose work runs on the compute thread, whoever calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quantgate_engine.executor.base import BlockCopy, NoToken, SampledToken, ScheduledSequence, TokenScore
from quantgate_engine.executor.compute_thread import on_compute_thread

if TYPE_CHECKING:
    from torch import Tensor

    from quantgate_engine.config import EngineConfig
    from quantgate_engine.executor.torch_executor import TorchExecutor
    from quantgate_engine.model_info import ModelInfo


class PinnedExecutor:
    """Implements `Executor` by a torch executor on the compute thread."""

    def __init__(self, executor: TorchExecutor) -> None:
        self._executor = executor
        self.num_blocks = executor.num_blocks
        self.block_size = executor.block_size
        self.max_context_tokens = executor.max_context_tokens
        self.vocab_size = executor.vocab_size
        self.eos_token_ids = executor.eos_token_ids
        self.cache_identity = executor.cache_identity

    @property
    def info(self) -> ModelInfo:
        return self._executor.info

    def beside(self, config: EngineConfig) -> PinnedExecutor:
        """See `TorchExecutor.beside`."""
        return PinnedExecutor(on_compute_thread(lambda: self._executor.beside(config)))

    def copy_blocks(self, copies: tuple[BlockCopy, ...]) -> None:
        on_compute_thread(lambda: self._executor.copy_blocks(copies))

    def execute(self, sequences: tuple[ScheduledSequence, ...]) -> list[SampledToken | NoToken | None]:
        return on_compute_thread(lambda: self._executor.execute(sequences))

    def device_joules(self) -> float | None:
        """Not on the compute thread: the counter is read beside running steps."""
        return self._executor.device_joules()

    def logits(self, token_ids: Sequence[int], chunk_tokens: int | None = None) -> Tensor:
        return on_compute_thread(lambda: self._executor.logits(token_ids, chunk_tokens))

    def token_scores(self, token_ids: Sequence[int], alternatives: int) -> list[TokenScore]:
        return on_compute_thread(lambda: self._executor.token_scores(token_ids, alternatives))

    def continuation_logits(
        self, prompt_ids: Sequence[int], continuations: Sequence[Sequence[int]], chunk_tokens: int | None = None
    ) -> list[Tensor]:
        return on_compute_thread(lambda: self._executor.continuation_logits(prompt_ids, continuations, chunk_tokens))
