"""A comparison as one JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.peers.agreement import agreement
from benchmarks.peers.bars import Width, doubts, verdicts
from benchmarks.peers.figures import FIGURES, fastest, ratio, summary_of
from benchmarks.peers.rounds import ArmResult

Quality = Mapping[str, Any]


def comparison(
    widths: Sequence[Width], shown: Mapping[int, Sequence[ArmResult]], quality: Quality | None
) -> dict[str, Any]:
    """shown: all arms of a width, those of further schemes of quantgate's included."""
    return {
        "quality": None if quality is None else {name: quality[name] for name in ("largest_share_of_usual", "schemes")},
        "widths": {str(width.bits): _width(width, shown[width.bits], quality) for width in widths},
        "bars": [asdict(verdict) for verdict in verdicts(widths)],
    }


def _width(width: Width, shown: Sequence[ArmResult], quality: Quality | None) -> dict[str, Any]:
    leaders = {figure.name: fastest(width.peers, figure) for figure in FIGURES}
    return {
        "stands_for_quantgate": None if width.own is None else width.own.arm.name,
        "counts_not_because": doubts(width, _quality_kept(width.own, quality)),
        "fastest_peers": {name: peer.arm.name for name, peer in leaders.items() if peer is not None},
        "arms": {result.arm.name: _arm(result, quality) for result in shown},
        "ratios_to_fastest_peer": {
            result.arm.name: {
                figure.name: asdict(ratio(result, peer, figure))
                for figure in FIGURES
                if (peer := leaders[figure.name]) is not None
            }
            for result in shown
            if result.arm.is_own and result.arm.precision.bits == width.bits and result.ran
        },
    }


def _quality_kept(own: ArmResult | None, quality: Quality | None) -> bool | None:
    if own is None or quality is None:
        return None
    kept = quality["schemes"].get(own.arm.precision.name, {}).get("kept")
    return None if kept is None else bool(kept)


def _arm(result: ArmResult, quality: Quality | None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "widths": None if result.widths is None else asdict(result.widths),
        "versions": result.versions,
        "load_s": result.load_s,
        "peak_rss_mib": result.peak_rss_mib,
        "failure": result.failure,
        "singles": [asdict(turn) for turn in result.singles],
        "batches": [asdict(turn) for turn in result.batches],
    }
    if result.batches:
        document |= {figure.name: asdict(summary_of(result, figure)) for figure in FIGURES}
        noises = [turn.noise for turn in (*result.singles, *result.batches)]
        document["most_other_cores"] = max(noise.other_cores for noise in noises)
        document["most_stolen_cores"] = max(noise.stolen_cores for noise in noises)
        if quality is not None:
            found = agreement(result.single_ids, result.batch_ids, quality["single_ids"], quality["batch_ids"])
            document["greedy_agreement_with_fp32"] = asdict(found)
    return document
