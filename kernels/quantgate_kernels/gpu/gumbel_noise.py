"""Inside kernels: Gumbel noise, of each token a function of (seed, position, token id) alone.

-log(-log1p(-u)), where u is uniform in steps of 2^-32, from the bits of Philox4x64-10 (Salmon et al. 2011,
doi:10.1145/2063384.2063405) as numpy draws them, eight tokens to a counter. The bits are numpy's; the logarithms may
differ from numpy's own in their last digits, so that two sums that equal each other to a millionth may change places.
"""

from __future__ import annotations

import triton
import triton.language as tl

TOKENS_OF_COUNTER = tl.constexpr(8)
RESOLUTION = tl.constexpr(2.0**-32)
LARGEST_BELOW_ONE = tl.constexpr(1.0 - 2.0**-24)


@triton.jit
def gumbel_noise(seed: tl.tensor, position: tl.tensor, first: tl.tensor, COUNTERS: tl.constexpr) -> tl.tensor:
    """uint64 seed and position -> float32 [8 * COUNTERS]: of the tokens from 8 * first on."""
    uniform = random_bits(seed, position, first, COUNTERS).to(tl.float32)
    uniform = tl.minimum((uniform + 0.5) * RESOLUTION, LARGEST_BELOW_ONE)
    return -tl.log(exponential(uniform))


@triton.jit
def exponential(uniform: tl.tensor) -> tl.tensor:
    """-log1p(-u). Small numbers, from which the tokens that win come, by the series: 1 - u would lose their digits."""
    series = 1.0 / 7
    for term in tl.static_range(6):
        series = 1.0 / (6 - term) + uniform * series
    return tl.where(uniform < 0.125, uniform * series, -tl.log(1.0 - uniform))


@triton.jit
def random_bits(seed: tl.tensor, position: tl.tensor, first: tl.tensor, COUNTERS: tl.constexpr) -> tl.tensor:
    """-> uint32 [8 * COUNTERS]: numpy's Philox with the seed for a key, and the position for its counter's second word.

    numpy counts before it draws, so that the first counter is 1.
    """
    word0 = (first + 1 + tl.arange(0, COUNTERS)).to(tl.uint64)
    word1 = word0 * 0 + position
    word2 = word0 * 0
    word3 = word0 * 0
    key0 = seed
    key1 = seed * 0
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(word0, 0xD2E7470EE14C6C93), word0 * 0xD2E7470EE14C6C93
        high2, low2 = tl.umulhi(word2, 0xCA5A826395121157), word2 * 0xCA5A826395121157
        word0, word1, word2, word3 = high2 ^ word1 ^ key0, low2, high0 ^ word3 ^ key1, low0
        key0 += 0x9E3779B97F4A7C15
        key1 += 0xBB67AE8584CAA73B
    words = _in_order(word0, word1, word2, word3)
    return tl.join(words.to(tl.uint32), (words >> 32).to(tl.uint32)).reshape(COUNTERS * TOKENS_OF_COUNTER)


@triton.jit
def _in_order(word0: tl.tensor, word1: tl.tensor, word2: tl.tensor, word3: tl.tensor) -> tl.tensor:
    """[COUNTERS] each -> [COUNTERS, 2, 2]: the words of a counter one after the other."""
    return tl.join(tl.join(word0, word2), tl.join(word1, word3))
