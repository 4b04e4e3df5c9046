"""Run ids: the UTC time and a short random suffix, so that folders sort by time and never collide."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random


def new_run_id(now: datetime, random: Random) -> str:
    """For example `20261129T174200Z-3f9c`; `now` must carry a time zone."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{random.getrandbits(16):04x}"
