"""Short spellings of trace records for tests."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from quantgate.traces.record import TraceRecord

SECOND = 1_000_000_000

# Property tests say nothing about speed: a busy machine must not fail them.
patiently = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def counted(request_id: str, at_s: float = 0.0, prompt: int = 4, output: int = 2, **changes: Any) -> TraceRecord:
    """A record that tells its prompt's length only."""
    return TraceRecord(request_id, round(at_s * SECOND), output, prompt_token_count=prompt, **changes)


def session(session_id: str, times_s: list[float], **changes: Any) -> list[TraceRecord]:
    return [
        counted(f"{session_id}.{turn}", at_s, session_id=session_id, turn=turn, **changes)
        for turn, at_s in enumerate(times_s, start=1)
    ]


@st.composite
def workloads(draw: st.DrawFn, max_units: int = 25) -> list[TraceRecord]:
    """Records in order of time: single requests and interleaved sessions of up to four turns."""
    records: list[TraceRecord] = []
    for unit in range(draw(st.integers(1, max_units))):
        turns = draw(st.integers(1, 4))
        times_s = sorted(draw(st.lists(st.integers(0, 100), min_size=turns, max_size=turns)))
        lengths = st.integers(1, 50)
        if turns == 1:
            records.append(counted(f"r{unit}", times_s[0], draw(lengths), draw(lengths)))
        else:
            records += session(
                f"s{unit}", [float(time) for time in times_s], prompt=draw(lengths), output=draw(lengths)
            )
    return sorted(records, key=lambda record: record.scheduled_ns)
