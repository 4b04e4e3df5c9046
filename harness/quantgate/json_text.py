"""JSON of somebody else's: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json


def parse_json(text: str | bytes) -> object:
    """The document. Raises ValueError for what is no JSON, brackets nested without end included."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
