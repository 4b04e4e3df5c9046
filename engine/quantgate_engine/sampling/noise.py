"""The noise that tokens are drawn by: of each token a function of (seed, position, token id) alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD = 2**64

_RESOLUTION = np.float32(2.0**-32)
_LARGEST_BELOW_ONE = np.float32(1.0 - 2.0**-24)


def gumbel_noise(
    seed: int, position: int, vocab_size: int, token_ids: NDArray[np.integer[Any]] | None = None
) -> NDArray[np.float32]:
    """Standard Gumbel numbers, one per token of the vocabulary or of `token_ids`; from -2.9 to 22.9, never infinite.

    -log(-log1p(-u)), where u is uniform in (0, 1) in steps of 2^-32: fine where it is small, from which the tokens that
    win come, so that a token of probability 1e-9 still has its chance. The bits are those of the counter-based
    generator Philox4x64-10 (Salmon et al. 2011, doi:10.1145/2063384.2063405), eight tokens to a counter: the key is the
    seed, the counter's second word the position, its first the token id divided by eight. No state passes from token to
    token, so that preemption, batch mates and chunking cannot change a draw.

    All of the vocabulary's bits are made in any case: numpy draws 49,152 of them in 0.08 ms, as long as it takes to set
    the counter a dozen times.
    """
    generator = np.random.Philox(key=seed % WORD, counter=(position % WORD) * WORD)
    bits = generator.random_raw((vocab_size + 1) // 2).view(np.uint32)[:vocab_size]
    uniform = (bits if token_ids is None else bits[token_ids]).astype(np.float32)
    uniform += np.float32(0.5)
    uniform *= _RESOLUTION
    # The largest numbers round to 1, whose noise would be infinite.
    np.minimum(uniform, _LARGEST_BELOW_ONE, out=uniform)
    exponential = np.log1p(np.negative(uniform, out=uniform), out=uniform)
    return np.negative(np.log(np.negative(exponential, out=exponential), out=exponential), out=exponential)
