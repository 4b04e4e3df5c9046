"""A drawn sample holds every stratum in proportion, and a larger one holds the smaller."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from quantgate.judging.drawing import stratified_order

Item = tuple[str, int]


def items_of(sizes: dict[str, int]) -> list[Item]:
    return [(name, number) for name, size in sorted(sizes.items()) for number in range(size)]


def drawn(items: list[Item], seed: int) -> list[Item]:
    return stratified_order(items, lambda item: (item[0],), seed)


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(1, 40), min_size=1), st.integers(0, 99), st.data())
def test_every_prefix_is_proportional(sizes: dict[str, int], seed: int, data: st.DataObject) -> None:
    items = items_of(sizes)
    order = drawn(items, seed)
    assert sorted(order) == items
    length = data.draw(st.integers(0, len(items)))
    counts = Counter(name for name, _ in order[:length])
    for name, size in sizes.items():
        assert abs(counts[name] - length * size / len(items)) <= len(sizes)


def test_the_seed_decides_and_the_order_of_the_input_does_not_matter_to_the_shares() -> None:
    items = items_of({"a": 30, "b": 10})
    assert drawn(items, 1) == drawn(items, 1)
    assert drawn(items, 1) != drawn(items, 2)
    for length in (4, 8, 20, 36):
        counts = Counter(name for name, _ in drawn(items, 7)[:length])
        assert abs(counts["b"] - length / 4) <= 1


def test_members_of_a_stratum_are_equally_likely_to_come_early() -> None:
    items = items_of({"a": 5})
    first = Counter(drawn(items, seed)[0] for seed in range(500))
    assert set(first) == set(items)
    assert max(first.values()) < 140
