"""Bounds against counts that are made one by one, and against figures worked out by hand for the bundled model."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from quantgate_kernels.roofline import DecoderWork, DeviceLimits, Width, Work, bound_of

MACHINE = DeviceLimits(80e9, 0.94e12, 2.04e12, 0.51e12, threads=2, measured_by={})
PARAMETERS, HEAD = 106_168_320, 49_152 * 576
SMOLLM2 = DecoderWork(
    linear_bytes=2 * PARAMETERS,
    head_bytes=2 * HEAD,
    kv_bytes_per_token=30 * 2 * 3 * 64 * 2,
    linear_parameters=PARAMETERS,
    head_parameters=HEAD,
    query_size=576,
    windows=((None, 30),),
    linear_width="16-bit",
    width="16-bit",
)
W8A8 = replace(SMOLLM2, linear_bytes=PARAMETERS + 4 * 30 * 5_184, linear_width="int8")


def test_decoding_one_stream_is_bounded_by_what_it_reads() -> None:
    bound = bound_of([SMOLLM2.decode_step(1, 512)], MACHINE)
    assert bound is not None
    assert bound.limited_by == "memory"
    # (106,168,320 + 28,311,552) * 2 bytes of weights, 512 * 23,040 of keys and values
    assert bound.bytes_read == 268_959_744 + 11_796_480
    assert 1 / bound.seconds == pytest.approx(284.9, abs=0.1)


@pytest.mark.parametrize(("work", "milliseconds"), [(SMOLLM2, 125.4), (W8A8, 63.0)])
def test_a_prompt_is_bounded_by_what_it_multiplies_in_the_arms_own_width(
    work: DecoderWork, milliseconds: float
) -> None:
    bound = bound_of([work.prefill_step(512, 1, 512, draws=1)], MACHINE)
    assert bound is not None
    assert bound.limited_by == "arithmetic"
    # 2 * 106,168,320 * 512; 4 * 576 * 30 * 512 * 513 / 2; 2 * 28,311,552
    assert sum(bound.operations.values()) == 108_716_359_680 + 9_077_391_360 + 56_623_104
    assert bound.seconds * 1e3 == pytest.approx(milliseconds, abs=0.05)


def test_only_the_linear_layers_of_int8_activations_are_held_to_int8() -> None:
    operations = W8A8.prefill_step(512, 1, 512, draws=1).operations
    assert operations == {"int8": 108_716_359_680, "16-bit": 9_077_391_360 + 56_623_104}
    assert bound_of([W8A8.decode_step(1, 1)], replace(MACHINE, int8_ops_per_s=None)) is None
    assert bound_of([SMOLLM2.decode_step(1, 1)], replace(MACHINE, int8_ops_per_s=None)) is not None


def test_float32_arms_are_held_to_float32() -> None:
    wide = replace(SMOLLM2, linear_width="float32", width="float32")
    bound = bound_of([wide.prefill_step(512, 1, 512, draws=0)], MACHINE)
    assert bound is not None
    assert bound.seconds == pytest.approx((108_716_359_680 + 9_077_391_360) / 0.51e12)


def test_each_piece_of_work_takes_the_longer_of_reading_and_computing() -> None:
    reads, computes = Work(80e9, {"16-bit": 0.47e12}), Work(8e9, {"16-bit": 0.94e12, "int8": 1.02e12})
    bound = bound_of([reads, computes, computes], MACHINE)
    assert bound is not None
    assert bound.memory_seconds == pytest.approx(1.0 + 0.1 + 0.1)
    assert bound.compute_seconds == pytest.approx(0.5 + 1.5 + 1.5)
    assert bound.seconds == pytest.approx(1.0 + 1.5 + 1.5)
    assert bound.limited_by == "arithmetic"
    assert bound.bytes_read == 96e9
    assert bound.operations == {"16-bit": 0.47e12 + 1.88e12, "int8": 2.04e12}


def test_no_work_takes_no_time() -> None:
    bound = bound_of([], MACHINE)
    assert bound is not None
    assert bound.seconds == 0.0


def test_the_head_is_read_and_multiplied_where_a_token_is_drawn() -> None:
    first, last = (SMOLLM2.prefill_step(64, 1, 64, draws=draws) for draws in (0, 1))
    assert last.bytes_read - first.bytes_read == 2 * HEAD
    assert last.operations["16-bit"] - first.operations["16-bit"] == 2 * HEAD


WIDTH: Width = "16-bit"


def counted(work: DecoderWork, sequences: list[tuple[int, int]], draws: int, *, decode: bool) -> Work:
    """Of sequences as (tokens before, new tokens), token by token and layer by layer."""
    seen_of_cache = pairs = 0
    layers = sum(count for _, count in work.windows)
    for window, count in work.windows:
        for earlier, new in sequences:
            for position in range(earlier, earlier + new):
                pairs += count * min(position + 1, window or position + 1)
            if decode:
                seen_of_cache += count * min(earlier + 1, window or earlier + 1)
            else:
                # The first new token looks furthest back.
                seen_of_cache += count * min(earlier, (window or earlier + 1) - 1)
    rows = sum(new for _, new in sequences)
    return Work(
        work.linear_bytes + (work.head_bytes if draws else 0) + work.kv_bytes_per_token / layers * seen_of_cache,
        {WIDTH: 2 * work.linear_parameters * rows + 2 * work.head_parameters * draws + 4 * work.query_size * pairs},
    )


SMALL = DecoderWork(1000, 300, 4 * 48, 500, 150, 8, ((None, 3), (5, 1)), WIDTH, WIDTH)
ALL_LAYERS_WHOLE = replace(SMALL, windows=((None, 4),))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("work", [SMALL, ALL_LAYERS_WHOLE], ids=["a window", "none"])
def test_what_is_counted_one_by_one_is_never_less_than_the_work_of_a_step(work: DecoderWork, seed: int) -> None:
    random = Random(seed)
    sequences = [(random.choice([0, 0, 3, 40]), random.randint(1, 12)) for _ in range(random.randint(1, 5))]
    tokens, contexts = sum(new for _, new in sequences), sum(sum(pair) for pair in sequences)
    least = work.prefill_step(tokens, len(sequences), contexts, draws=0)
    exact = counted(work, sequences, draws=0, decode=False)
    assert least.bytes_read <= exact.bytes_read + 1e-9
    assert least.operations[WIDTH] <= exact.operations[WIDTH] + 1e-9

    decoding = [(earlier, 1) for earlier, _ in sequences]
    contexts = sum(earlier + 1 for earlier, _ in sequences)
    least = work.decode_step(len(decoding), contexts)
    exact = counted(work, decoding, draws=len(decoding), decode=True)
    assert least.bytes_read <= exact.bytes_read + 1e-9
    assert least.operations[WIDTH] <= exact.operations[WIDTH] + 1e-9


@pytest.mark.parametrize(("earlier", "new"), [(0, 1), (0, 9), (16, 1), (16, 7)])
def test_of_one_sequence_over_whole_contexts_the_work_is_exact(earlier: int, new: int) -> None:
    assert ALL_LAYERS_WHOLE.prefill_step(new, 1, earlier + new, draws=1) == counted(
        ALL_LAYERS_WHOLE, [(earlier, new)], draws=1, decode=False
    )
    assert ALL_LAYERS_WHOLE.decode_step(1, earlier + 1) == counted(
        ALL_LAYERS_WHOLE, [(earlier, 1)], draws=1, decode=True
    )


def test_sequences_of_equal_length_are_counted_exactly_when_they_start() -> None:
    assert ALL_LAYERS_WHOLE.prefill_step(24, 3, 24, draws=3) == counted(
        ALL_LAYERS_WHOLE, [(0, 8)] * 3, draws=3, decode=False
    )
