"""The interface of the hot operations. `reference` defines what is right; other sets must agree with it."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from quantgate_kernels.layers import Angles, DecoderShape, DecoderWeights, TableWeight
from quantgate_kernels.step_program import StepProgram
from quantgate_kernels.types import AttentionBatch, DenseWeight, KVLayer, LinearWeight, StoredWeight


class DrawTokens(Protocol):
    """logits float32 [R, vocab] -> int64 [R]: of each row the token that wins by the noise of (seed, position).

    temperatures and min_p (0: cuts nothing) float32 [R]; seeds, whose bits are those of an unsigned number, and
    positions int64 [R]. Of rows with a logit that is not finite, any token.
    """

    def __call__(
        self, logits: Tensor, temperatures: Tensor, min_p: Tensor, seeds: Tensor, positions: Tensor
    ) -> Tensor: ...


class KernelSet(Protocol):
    """Hot operations of a decoder step; rows are tokens, T of them.

    A set records in `paths` which implementation each operation really took (`{"linear.int4-g64": "..."}`), so that
    a comparison between arms on unlike paths can say so.

    recordable: whether a decode step may be recorded and replayed (a CUDA graph) over other numbers in the same
    tensors: so in a batch of one new token each, the set makes tensors of other tensors alone, and takes from the
    batch's host copies nothing but how to divide the work.
    """

    name: str
    paths: dict[str, str]
    recordable: bool = False

    def stored_form(self, weight: LinearWeight, compute: torch.dtype, *, split: bool = False) -> StoredWeight:
        """The form in which this set multiplies rows of dtype `compute` by `weight`.

        Called once at load; it replaces the given form. split: the outputs are gates, then ups; a set whose step
        program multiplies the two as they are computed may lay them out side by side, for its program alone.
        """
        ...

    def stored_table(self, weight: DenseWeight, compute: torch.dtype) -> TableWeight:
        """The same for an embedding or a head."""
        ...

    def embed(self, token_ids: Tensor, table: TableWeight, compute: torch.dtype) -> Tensor:
        """int64 [T] -> the table's rows [T, hidden] in `compute`."""
        ...

    def step_program(self, weights: DecoderWeights, shape: DecoderShape, angles: Angles) -> StepProgram | None:
        """All layers of a step as one call, where this set has that for these weights; else the operations below do."""
        ...

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x [T, hidden] (+ residual) -> (normalised, the sum that goes on as residual)."""
        ...

    def rope_and_write_kv(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, num_heads: int, num_kv_heads: int, cache: KVLayer, slots: Tensor
    ) -> Tensor:
        """qkv [T, (heads + 2 kv_heads) * head_dim], cos and sin [T, head_dim] in float32 (half-rotation layout).

        Rotates queries and keys, writes keys and values to `slots`, returns queries [T, heads, head_dim]. A cache with
        scales takes codes: values as they come, keys from float32 after the rotation, spread over the head's numbers as
        the queries are then too, which changes no product of the two.
        """
        ...

    def attention(
        self, q: Tensor, cache: KVLayer, batch: AttentionBatch, scale: float, window: int | None = None
    ) -> Tensor:
        """Causal grouped-query attention over the paged cache: q [T, heads, head_dim] -> [T, heads * head_dim].

        window: a query at position p sees the keys p - window + 1 .. p (sliding window: Jiang et al. 2023,
        arXiv:2310.06825, as transformers masks it); None, or one that covers the context, hides nothing.
        """
        ...

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        """[T, 2 * ffn] -> [T, ffn]: silu(first half) * second half."""
        ...

    def linear(self, x: Tensor, weight: StoredWeight, bias: Tensor | None = None) -> Tensor:
        """x [T, in] -> [T, out] in x's dtype."""
        ...

    def head(self, x: Tensor, weight: StoredWeight, *, exact: bool = False) -> Tensor:
        """x [R, hidden] -> logits float32 [R, vocab], not rounded to x's dtype: at least the best ones of each row.

        weight: as `stored_table` gives it, or `stored_form` where a scheme quantizes the head.
        """
        ...

    def copy_blocks(self, source: Tensor, target: Tensor, pairs: Tensor) -> None:
        """source and target [parts, blocks, ...], alike but for their number of blocks; pairs int32 [N, 2].

        Copies all parts of block pairs[n, 0] to block pairs[n, 1]. The copies run side by side: no block is written
        twice, and none is read that another copy writes.
        """
        ...

    @property
    def multiplies_bfloat16(self) -> bool:
        """Of tensors on a CPU: whether products in bfloat16 are faster than in float32, or only emulated."""
        ...

    @property
    def draws(self) -> DrawTokens | None:
        """How tokens are drawn where their logits are; None where the set does not, and the host draws."""
        return None
