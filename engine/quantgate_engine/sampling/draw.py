"""The random number of one token: a function of (seed, position) alone."""

from __future__ import annotations

import numpy as np

WORD = 2**64


def uniform(seed: int, position: int) -> float:
    """In [0, 1), by the counter-based generator Philox4x64-10 (Salmon et al. 2011, doi:10.1145/2063384.2063405).

    The key is the seed, the counter the position of the token that is drawn; no state passes from token to token, so
    that preemption, batch mates and chunking cannot change a draw.
    """
    generator = np.random.Generator(np.random.Philox(key=seed % WORD, counter=position % WORD))
    return float(generator.random())
