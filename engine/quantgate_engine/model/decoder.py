"""The dense decoder: pre-norm attention and gated feed-forward blocks, written once for every kernel set and scheme."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from quantgate_engine.model.batch_tensors import build_batch
from quantgate_engine.model.config import DecoderConfig
from quantgate_engine.model.rope import RotaryTable
from quantgate_kernels.kernel_set import DrawTokens, KernelSet
from quantgate_kernels.layers import DecoderShape, DecoderWeights, HeadNorm
from quantgate_kernels.step_program import NO_BEST_TOKEN
from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import AttentionBatch, KVLayer


class Decoder:
    """Hidden states and logits of a step's rows; the KV cache belongs to the caller."""

    def __init__(
        self,
        config: DecoderConfig,
        weights: DecoderWeights,
        kernels: KernelSet,
        compute_dtype: torch.dtype,
        max_positions: int,
    ) -> None:
        self.config = config
        self.weights = weights
        self.kernels = kernels
        self._compute_dtype = compute_dtype
        self._scale = config.head_dim**-0.5
        rotation = config.rope.rotation(config.head_dim, max_positions)
        self._rope = RotaryTable(rotation, max_positions, weights.device)
        # A window over the longest sequence hides nothing: such a layer takes the cheaper path of whole contexts.
        self._windows = [None if (window or 0) >= max_positions else window for window in config.windows]
        self._program = kernels.step_program(weights, self._shape(), self._rope.angles)

    @property
    def can_be_recorded(self) -> bool:
        """Whether `layers` of a decode step may be recorded and replayed; see `KernelSet.recordable`."""
        return self._program is None and self.kernels.recordable and self.weights.recordable

    def hidden_states(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> Tensor:
        """-> [T, hidden] before the final norm; writes the rows' keys and values to the cache.

        output_rows: R of them, ascending: only these rows are wanted, and the result is [R, hidden].
        """
        if self._program is not None:
            return self._program.hidden_states(rows, cache, output_rows)
        device = self.weights.device
        token_ids, batch = build_batch(rows, device)
        hidden = self.layers(token_ids, batch, cache)
        if output_rows is None:
            return hidden
        return hidden.index_select(0, torch.tensor(output_rows, dtype=torch.int64, device=device))

    def layers(self, token_ids: Tensor, batch: AttentionBatch, cache: Sequence[KVLayer]) -> Tensor:
        """`hidden_states` of all rows, one operation after another: token_ids int64 [T], and the rest of the step."""
        cos, sin = self._rope.lookup(batch.positions)
        kernels, eps = self.kernels, self.config.rms_norm_eps
        residual = kernels.embed(token_ids, self.weights.embedding, self._compute_dtype)
        branch: Tensor | None = None
        for layer, kv, window in zip(self.weights.layers, cache, self._windows, strict=True):
            normalised, residual = self._add_and_norm(residual, branch, layer.attention_norm)
            qkv = kernels.linear(normalised, layer.query_key_value.weight, layer.query_key_value.bias)
            if layer.head_norm is not None:
                qkv = self._norm_heads(qkv, layer.head_norm)
            q = kernels.rope_and_write_kv(
                qkv, cos, sin, self.config.num_heads, self.config.num_kv_heads, kv, batch.slots
            )
            attended = kernels.attention(q, kv, batch, self._scale, window)
            branch = kernels.linear(attended, layer.attention_output.weight, layer.attention_output.bias)
            normalised, residual = kernels.rms_norm(branch, layer.ffn_norm, eps, residual)
            gated = kernels.silu_and_mul(kernels.linear(normalised, layer.gate_up.weight, layer.gate_up.bias))
            branch = kernels.linear(gated, layer.down.weight, layer.down.bias)
        return residual if branch is None else residual + branch

    def logits(self, hidden: Tensor, *, exact: bool = False) -> Tensor:
        """[R, hidden] -> float32 [R, vocab]. Callers pass the rows that they need, not all rows of a step.

        exact: every logit in float32, as probabilities need it; else the likeliest at least, as choosing a token does.
        """
        if self._program is not None:
            return self._program.logits(hidden)
        normalised, _ = self.kernels.rms_norm(hidden, self.weights.final_norm, self.config.rms_norm_eps)
        return self.kernels.head(normalised, self.weights.head, exact=exact)

    def best_tokens(self, hidden: Tensor) -> Tensor:
        """[R, hidden] -> int64 [R]: the argmax of each row's logits, NO_BEST_TOKEN where something overflowed."""
        if self._program is not None:
            return self._program.best_tokens(hidden)
        greatest, best = self.logits(hidden).max(dim=-1)
        lengths = torch.linalg.vector_norm(hidden, dim=-1, dtype=torch.float32)
        return best.where(greatest.isfinite() & lengths.isfinite(), NO_BEST_TOKEN)

    @property
    def draws(self) -> DrawTokens | None:
        """See `KernelSet.draws`; for `drawn_tokens`."""
        return None if self._program is not None else self.kernels.draws

    def drawn_tokens(
        self, draw: DrawTokens, hidden: Tensor, temperatures: Tensor, min_p: Tensor, seeds: Tensor, positions: Tensor
    ) -> Tensor:
        """[R, hidden] -> int64 [R]: as `draw` says; NO_BEST_TOKEN where a logit is NaN or infinite."""
        logits = self.logits(hidden)
        drawn = draw(logits, temperatures, min_p, seeds, positions)
        # The sum of a row with such a logit is one too, and takes no memory of the logits' size as a test of each does.
        return drawn.where(logits.sum(dim=-1).isfinite(), NO_BEST_TOKEN)

    def next_tokens(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> list[int]:
        """The `best_tokens` of the `hidden_states`: of a step program one call, and none into torch."""
        if self._program is not None:
            return self._program.next_tokens(rows, cache, output_rows)
        with torch.inference_mode():
            hidden = self.hidden_states(rows, cache, output_rows)
            # Amid the chunks of a prompt nothing is read, and no head need know what it makes of no rows.
            best: list[int] = self.best_tokens(hidden).tolist() if len(hidden) else []
        return best

    def _shape(self) -> DecoderShape:
        config = self.config
        return DecoderShape(
            hidden=config.hidden_size,
            heads=config.num_heads,
            kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            ffn=config.ffn_size,
            norm_eps=config.rms_norm_eps,
            attention_scale=self._scale,
            windows=tuple(self._windows),
        )

    def _add_and_norm(self, residual: Tensor, branch: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        if branch is None:
            return self.kernels.rms_norm(residual, weight, self.config.rms_norm_eps)
        return self.kernels.rms_norm(branch, weight, self.config.rms_norm_eps, residual)

    def _norm_heads(self, qkv: Tensor, norm: HeadNorm) -> Tensor:
        """qkv [T, (heads + 2 kv_heads) * head_dim]: normalises each query head and each key head on its own."""
        config, eps = self.config, self.config.rms_norm_eps
        sizes = (config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim)
        query, key, value = torch.split(qkv, [*sizes, sizes[1]], dim=-1)
        query, _ = self.kernels.rms_norm(query.reshape(-1, config.head_dim), norm.query, eps)
        key, _ = self.kernels.rms_norm(key.reshape(-1, config.head_dim), norm.key, eps)
        return torch.cat((query.view(-1, sizes[0]), key.view(-1, sizes[1]), value), dim=-1)
