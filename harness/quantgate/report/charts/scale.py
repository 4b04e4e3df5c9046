"""From values to pixels, and the round numbers that an axis shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps [low, high] onto pixels [start, end], linearly or by logarithm; values outside are held at the border."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, values: np.ndarray | float) -> np.ndarray:
        held = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.logarithmic:
            share = (np.log(held) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            share = (held - self.low) / (self.high - self.low)
        pixels: np.ndarray = self.start + share * (self.end - self.start)
        return pixels

    def at(self, value: float) -> float:
        return float(self(value))

    def ticks(self, about: int = 5) -> list[float]:
        return _log_ticks(self.low, self.high, about) if self.logarithmic else _linear_ticks(self.low, self.high, about)


def linear_scale(values: np.ndarray, start: float, end: float, *, from_zero: bool = True) -> Scale:
    """A linear scale that holds all finite values, widened to whole ticks."""
    finite = values[np.isfinite(values)]
    low = float(finite.min()) if finite.size else 0.0
    high = float(finite.max()) if finite.size else 1.0
    if from_zero:
        low = min(0.0, low)
    if high <= low:
        high = low + 1.0
    step = _tick_step(low, high, 4)
    return Scale(math.floor(low / step) * step, math.ceil(high / step) * step, start, end)


def log_scale(values: np.ndarray, start: float, end: float) -> Scale:
    """A logarithmic scale that holds all finite positive values, with a little room on both sides."""
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 10.0)
    room = max((high / low) ** 0.04, 1.1)
    return Scale(low / room, high * room, start, end, logarithmic=True)


def _tick_step(low: float, high: float, about: int) -> float:
    raw = (high - low) / about
    magnitude = 10.0 ** math.floor(math.log10(raw))
    return next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= raw * 0.999)


def _linear_ticks(low: float, high: float, about: int) -> list[float]:
    step = _tick_step(low, high, about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _log_ticks(low: float, high: float, about: int) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [f * 10.0**d for d in decades for f in factors if low <= f * 10.0**d <= high]
        if len(ticks) <= about + 2:
            return ticks
    return ticks[:: max(1, len(ticks) // about)]
