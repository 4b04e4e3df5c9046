"""What a rule's reason says about task items that the candidate alone failed."""

from __future__ import annotations

from quantgate.gate.evidence import Pairing, QualityPairs


def lost_items(pairing: Pairing, pairs: QualityPairs, treatment: str) -> str:
    """A sentence with their number and `treatment`, what they mean for the rule; empty where there are none."""
    if not pairs.lost:
        return ""
    reverse = f" ({pairs.won:,} on {pairing.baseline_id} alone)" if pairs.won else ""
    return f"Items that failed on {pairing.candidate_id} alone: {pairs.lost:,}{reverse}; they {treatment}."
