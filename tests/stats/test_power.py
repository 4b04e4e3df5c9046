"""Power by formula against worked values and against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from quantgate.stats.power import (
    binary_standard_error,
    chance_to_pass,
    discordance,
    minimum_detectable_effect,
)
from quantgate.stats.tango import tango_interval


@pytest.mark.parametrize(
    ("n", "share", "effect_pp"), [(100, 0.02, 3.5), (164, 0.05, 4.3), (282, 0.10, 4.7), (1000, 0.20, 3.5)]
)
def test_minimum_detectable_effects_computed_elsewhere(n: int, share: float, effect_pp: float) -> None:
    """One-sided 5 % is two-sided 90 %."""
    effect = minimum_detectable_effect(binary_standard_error(share, n), confidence=0.90, power=0.8)
    assert 100 * effect == pytest.approx(effect_pp, abs=0.06)


def test_no_difference_seen_is_not_no_difference() -> None:
    assert discordance(0, 0, 98) == pytest.approx(0.01)


def test_the_chance_to_pass_is_what_simulation_finds() -> None:
    rng = np.random.default_rng(3)
    n, share, margin = 400, 0.06, 0.03
    draws = rng.multinomial(n, [share / 2, share / 2, 1 - share], size=500)
    passed = np.mean([tango_interval(int(b), int(c), n).upper < margin for b, c, _ in draws])
    expected = chance_to_pass(0.0, binary_standard_error(share, n), margin, 0.95)
    assert passed == pytest.approx(expected, abs=0.08)
    assert chance_to_pass(0.0, 0.0, margin, 0.95) == 1
