"""What the reader of a verdict must know about the arms' answers before comparing their times."""

from __future__ import annotations

from collections import Counter

import numpy as np

from quantgate.gate.evidence import Pairing
from quantgate.gate.families.length import finished_on_both
from quantgate.metrics.output_tokens import OUTPUT_TOKENS
from quantgate_engine.counted import counted

_SHOWN_CHANGE = 0.0005
"""Mean lengths that differ by less are written as the same: 0.1 % is the last digit shown."""


def unlike_lengths(pairing: Pairing) -> list[str]:
    """A notice where the two arms answered some request with different numbers of tokens; else nothing."""
    served = finished_on_both(pairing)
    baseline, candidate = OUTPUT_TOKENS(pairing.baseline)[served], OUTPUT_TOKENS(pairing.candidate)[served]
    differing = int((baseline != candidate).sum())
    if not differing:
        return []
    forced = "although the replay asked for forced lengths, " if pairing.output_lengths == "forced" else ""
    return [
        f"Answer lengths: {forced}{pairing.candidate_id} and {pairing.baseline_id} gave different numbers of tokens in "
        f"{differing:,} of {counted(len(baseline), 'request')} that both finished; {pairing.candidate_id}'s answers "
        f"are {_change(float(baseline.mean()), float(candidate.mean()))}. Times of whole answers compare unlike work, "
        "and times per token are taken over unlike numbers of them."
    ]


def unlike_counting(pairing: Pairing) -> list[str]:
    """A notice where the two arms' tokens were counted in different ways; else nothing."""
    served = np.flatnonzero(finished_on_both(pairing))
    ways = [table.column("counted_by").take(served).to_pylist() for table in (pairing.baseline, pairing.candidate)]
    unlike = Counter((own, other) for own, other in zip(*ways, strict=True) if own != other)
    if not unlike:
        return []
    own, other = unlike.most_common(1)[0][0]
    return [
        f"Token counting: in {unlike.total():,} of {counted(len(served), 'request')} that both finished, the tokens of "
        f"{pairing.candidate_id} were counted in another way than those of {pairing.baseline_id} (mostly {other} "
        f"instead of {own}); differences in TPOT and in gaps between tokens may be those of the counting."
    ]


def _change(baseline: float, candidate: float) -> str:
    """How the mean length differs, in words and tokens."""
    tokens = f"{baseline:.1f} to {candidate:.1f} tokens"
    if baseline == 0 or abs(candidate / baseline - 1) < _SHOWN_CHANGE:
        return f"on average {'longer' if candidate > baseline else 'as long'} ({tokens})"
    share = candidate / baseline - 1
    return f"on average {abs(100 * share):.1f} % {'longer' if share > 0 else 'shorter'} ({tokens})"
