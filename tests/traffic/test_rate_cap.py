"""A cap on starts: no window holds more, nothing leaves without need, and who stays is chance."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import SECOND, counted, patiently, session, workloads

from quantgate.traces.record import TraceRecord
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.transforms import RateCap, TransformContext, Transformed
from quantgate.workload.transforms.sessions import group_units, unit_key

CAPS = st.builds(RateCap, rate=st.floats(0.2, 3), window_s=st.sampled_from([5.0, 7.3, 30.0]))


def capped(records: Sequence[TraceRecord], cap: RateCap, seed: int = 0) -> Transformed:
    return cap.apply(records, TransformContext(PromptEncoder(None), seed))


def starts_of(records: Sequence[TraceRecord]) -> list[int]:
    return sorted(unit[0].scheduled_ns for unit in group_units(records).values())


def fullest(starts: Sequence[int], window_s: float) -> int:
    """A window that holds most can be moved to begin at a start."""
    return max(sum(begin <= start < begin + window_s * SECOND for start in starts) for begin in starts)


@patiently
@given(workloads(), CAPS, st.integers(0, 3))
def test_no_window_holds_more_and_no_unit_is_left_out_that_had_room(
    records: list[TraceRecord], cap: RateCap, seed: int
) -> None:
    most = int(cap.rate * cap.window_s + 1e-9)
    result = capped(records, cap, seed)
    kept = starts_of(result.records)
    assert fullest(kept, cap.window_s) <= most
    stayed = {unit_key(record) for record in result.records}
    for key, unit in group_units(records).items():
        if key not in stayed:
            assert fullest([*kept, unit[0].scheduled_ns], cap.window_s) > most
    assert result.details == {
        "starts": len(starts_of(records)),
        "starts_kept": len(kept),
        "most_in_a_window": fullest(starts_of(records), cap.window_s),
        "most_kept_in_a_window": fullest(kept, cap.window_s),
    }


def test_windows_lie_anywhere_not_at_whole_seconds_alone() -> None:
    records = [counted(str(at), at) for at in (0.6, 0.9, 1.1, 1.4)]
    assert len(capped(records, RateCap(rate=2)).records) == 2


def test_a_window_ends_before_the_next_one_begins() -> None:
    records = [counted(str(at), at) for at in range(5)]
    assert capped(records, RateCap(rate=1)).records == records


def test_a_product_that_is_whole_counts_as_whole() -> None:
    assert int(0.29 * 100) == 28
    records = [counted(str(number), 0) for number in range(40)]
    assert len(capped(records, RateCap(rate=0.29, window_s=100)).records) == 29


def test_later_turns_are_not_counted_and_go_with_their_session() -> None:
    records = sorted([*session("a", [0, 0.1, 0.2]), *session("b", [0, 0.3])], key=lambda record: record.scheduled_ns)
    for seed in range(10):
        left = capped(records, RateCap(rate=1), seed).records
        assert [record.turn for record in left] in ([1, 2, 3], [1, 2])


def test_each_unit_of_a_peak_has_the_same_chance() -> None:
    """Of ten at once two stay: each in one draw of five, over 2000 seeds within five standard deviations."""
    records = [counted(f"r{number}", 0) for number in range(10)]
    stays = dict.fromkeys((record.request_id for record in records), 0)
    for seed in range(2000):
        for record in capped(records, RateCap(rate=2), seed).records:
            stays[record.request_id] += 1
    assert all(abs(count - 400) < 5 * (2000 * 0.2 * 0.8) ** 0.5 for count in stays.values())


def test_the_seed_decides() -> None:
    records = [counted(f"r{number}", number / 10) for number in range(60)]
    assert capped(records, RateCap(rate=3), 1).records == capped(records, RateCap(rate=3), 1).records
    assert capped(records, RateCap(rate=3), 1).records != capped(records, RateCap(rate=3), 2).records
