"""Seeds that are made from a seed."""

from __future__ import annotations

import numpy as np

from quantgate_engine.sampling.noise import WORD


def derived_seed(seed: int, index: int) -> int:
    """The seed of number `index` of several draws that share a seed: the seed itself for 0, unrelated ones after it.

    By numpy's SeedSequence, so that neither neighbouring seeds nor neighbouring indices give one stream twice.
    """
    if index == 0:
        return seed
    return int(np.random.SeedSequence((seed % WORD, index)).generate_state(1, np.uint64)[0])
