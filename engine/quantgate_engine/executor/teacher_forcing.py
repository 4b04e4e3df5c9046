"""Logits of given tokens through the paged path, on blocks of their own: no running request is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from quantgate_engine.argument_checks import refuse_argument, require_count, token_ids_of
from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.base import ScheduledSequence, TokenScore
from quantgate_engine.executor.batch_input import rows_of
from quantgate_engine.executor.token_scores import score_rows
from quantgate_engine.model.decoder import Decoder
from quantgate_engine.sampling.finite_rows import NOT_FINITE, rows_beyond_norm, rows_not_finite
from quantgate_engine.sampling_params import SamplingParams
from quantgate_kernels.types import KVLayer


class TeacherForcing:
    """One decoder's view of given tokens. Not thread-safe: the executor that owns it serialises the calls.

    allocate: makes a cache of so many blocks. Raises ConfigurationError where tokens are none, not of the model's, more
    than a request may have, or need more blocks than the engine's pool holds, and RunError where logits are NaN or
    infinite: a score of such would look like one.
    """

    def __init__(
        self,
        decoder: Decoder,
        allocate: Callable[[int], tuple[KVLayer, ...]],
        *,
        block_size: int,
        num_blocks: int,
        max_context_tokens: int,
        max_step_tokens: int,
    ) -> None:
        self._decoder = decoder
        self._allocate = allocate
        self._block_size = block_size
        self._num_blocks = num_blocks
        self._max_context_tokens = max_context_tokens
        self._max_step_tokens = max_step_tokens

    def logits(self, token_ids: Sequence[int], chunk_tokens: int | None = None) -> Tensor:
        """float32 [len(token_ids), vocab]; row i is the view of token i + 1. `chunk_tokens` rows at a time."""
        known = self._known("logits", "token_ids", token_ids)
        table = tuple(range(self._blocks_for("logits", len(known))))
        # An ordinary tensor: those that are made in inference mode refuse in-place changes outside it. The host's.
        output = torch.empty(len(known), self._decoder.config.vocab_size)
        with torch.inference_mode():
            cache = self._allocate(len(table))
            for start, hidden in self._prefill("logits", known, table, cache, chunk_tokens):
                output[start : start + hidden.shape[0]] = self._logits(hidden)
        return output

    def token_scores(self, token_ids: Sequence[int], alternatives: int) -> list[TokenScore]:
        """Scores of all tokens but the first, which nothing comes before; of each, so many likeliest tokens.

        Logits of one chunk stand in memory at a time, however long the sequence.
        """
        known = self._known("token_scores", "token_ids", token_ids)
        require_count("token_scores: alternatives", alternatives, 0)
        table = tuple(range(self._blocks_for("token_scores", len(known))))
        scores: list[TokenScore] = []
        with torch.inference_mode():
            cache = self._allocate(len(table))
            for start, hidden in self._prefill("token_scores", known, table, cache, None):
                following = known[start + 1 : start + hidden.shape[0] + 1]
                if following:
                    logits = self._logits(hidden[: len(following)])
                    scores += score_rows(logits, following, alternatives)
        return scores

    def continuation_logits(
        self, prompt_ids: Sequence[int], continuations: Sequence[Sequence[int]], chunk_tokens: int | None = None
    ) -> list[Tensor]:
        """float32 [len(continuation), vocab] for each; row i is the view of continuation[i] after all before it.

        The prompt is computed once. Continuations share its full blocks, and each has a copy of the last, partly
        filled one; they are computed side by side in one step.
        """
        call = "continuation_logits"
        prompt_tokens = self._known(call, "prompt_ids", prompt_ids)
        if not isinstance(continuations, Iterable):
            raise refuse_argument(f"{call}: continuations", continuations, "a sequence of sequences of token ids")
        following = [self._known(call, "a continuation", continuation) for continuation in continuations]
        if not all(following):
            raise ConfigurationError(f"{call}() got an empty continuation; expected at least one token.")
        length, size = len(prompt_tokens), self._block_size
        prompt = tuple(range(self._blocks_for(call, length)))
        shared = length // size
        tables, next_block = [], len(prompt)
        for continuation in following:
            own = self._blocks_for(call, length + len(continuation)) - shared
            tables.append((*prompt[:shared], *range(next_block, next_block + own)))
            next_block += own
        with torch.inference_mode():
            cache = self._allocate(next_block)
            hidden = torch.cat([part for _, part in self._prefill(call, prompt_tokens, prompt, cache, chunk_tokens)])
            if length % size:
                _copy_block(cache, prompt[shared], [table[shared] for table in tables])
            longer = [
                _sequence(continuation[:-1], length, table)
                for continuation, table in zip(following, tables, strict=True)
                if len(continuation) > 1
            ]
            rows = [hidden[-1:], *([self._forward(longer, cache)] if longer else [])]
            logits = self._logits(torch.cat(rows))
        return _split(logits, [len(continuation) for continuation in following])

    def _known(self, call: str, name: str, token_ids: Sequence[int]) -> tuple[int, ...]:
        return token_ids_of(f"{call}: {name}", token_ids, self._decoder.config.vocab_size)

    def _prefill(
        self,
        call: str,
        token_ids: tuple[int, ...],
        table: tuple[int, ...],
        cache: tuple[KVLayer, ...],
        chunk_tokens: int | None,
    ) -> list[tuple[int, Tensor]]:
        require_count(f"{call}: chunk_tokens", chunk_tokens, 1, optional=True)
        chunk = chunk_tokens or self._max_step_tokens
        return [
            (start, self._forward([_sequence(token_ids[start : start + chunk], start, table)], cache))
            for start in range(0, len(token_ids), chunk)
        ]

    def _forward(self, sequences: list[ScheduledSequence], cache: tuple[KVLayer, ...]) -> Tensor:
        return self._decoder.hidden_states(rows_of(sequences, self._block_size), cache)

    def _logits(self, hidden: Tensor) -> Tensor:
        logits = self._decoder.logits(hidden, exact=True)
        if rows_beyond_norm(hidden) or rows_not_finite(logits):
            raise RunError(f"Nothing can be told of these tokens: {NOT_FINITE.error}.")
        return logits

    def _blocks_for(self, call: str, tokens: int) -> int:
        blocks = -(-tokens // self._block_size)
        if not 0 < tokens <= self._max_context_tokens or blocks > self._num_blocks:
            raise ConfigurationError(
                f"{call}() got {counted(tokens, 'token')}; expected 1 to {self._max_context_tokens} tokens that fit in "
                f"{counted(self._num_blocks, 'block')} of {self._block_size}."
            )
        return blocks


def _sequence(token_ids: tuple[int, ...], start: int, table: tuple[int, ...]) -> ScheduledSequence:
    return ScheduledSequence("teacher-forcing", token_ids, start, table, sample=False, params=SamplingParams())


def _copy_block(cache: tuple[KVLayer, ...], source: int, targets: list[int]) -> None:
    for layer in cache:
        for tensor in layer.tensors():
            tensor[targets] = tensor[source].clone()


def _split(logits: Tensor, lengths: list[int]) -> list[Tensor]:
    """Row 0 is the prompt's last, which every continuation starts from; the others follow one after the other."""
    first, start, parts = logits[:1], 1, []
    for length in lengths:
        # Ordinary tensors of their own in the host's memory, so that no caller keeps the others' rows alive or meets
        # inference mode.
        part = torch.empty(length, logits.shape[1])
        part[:1] = first
        part[1:] = logits[start : start + length - 1]
        start += length - 1
        parts.append(part)
    return parts
