"""Whether two tokenizers read alike, told by what they make of one text; servers show no more of theirs than that."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

# Digits, capitals, accents, other scripts and an emoji: what tokenizers that differ read differently.
TEXT = "Once upon a time, 13 lazy dogs met NAÏVE foxes at the café; 漢字 🙂 and"


def fingerprint(token_ids: Sequence[int]) -> str:
    """SHA-256 of the ids of TEXT, without special tokens."""
    return hashlib.sha256(",".join(map(str, token_ids)).encode()).hexdigest()
