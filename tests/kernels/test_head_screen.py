"""The screen before the head: the best tokens are those of every logit, whatever the numbers are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.own_rows import on_threads
from tests.kernels.product_cases import draw, draw_codes
from tests.kernels.step_arms import step_functions
from torch import Tensor

from quantgate_kernels.cpu import decoder_layout
from quantgate_kernels.cpu.decoder_step import CpuStepProgram
from quantgate_kernels.cpu.head_screen import HeadScreen, screen_of
from quantgate_kernels.cpu.library import Functions, load_functions
from quantgate_kernels.cpu.panels import pack, unpack
from quantgate_kernels.layers import Angles, DecoderShape, DecoderWeights
from quantgate_kernels.panel_weight import PanelWeight
from quantgate_kernels.step_program import NO_BEST_TOKEN
from quantgate_kernels.types import DenseWeight

ROWS = (1, 2, 4, 5, 7, 8, 9)


@pytest.fixture(scope="module")
def functions() -> dict[torch.dtype, Functions]:
    kernel_set_or_skip("cpu")
    return load_functions()


def head_alone(head: Tensor, norm: Tensor, functions: Mapping[torch.dtype, Functions]) -> CpuStepProgram:
    """head: [vocab, hidden]."""
    packed, hidden = pack(DenseWeight(head.bfloat16())), head.shape[1]
    shape = DecoderShape(
        hidden=hidden, heads=1, kv_heads=1, head_dim=hidden, ffn=1, norm_eps=1e-5, attention_scale=1.0, windows=()
    )
    weights = DecoderWeights(embedding=packed, layers=(), final_norm=norm, head=packed)
    # Of no layer: there are no angles to turn anything by.
    return CpuStepProgram(step_functions(functions), weights, shape, Angles(*torch.zeros(2, 1, hidden)))


def few_rows(x: Tensor) -> list[Tensor]:
    """The rows of x in steps of each number of rows."""
    return [part for rows in ROWS for part in x.split(rows)]


def wrong_tokens(program: CpuStepProgram, x: Tensor) -> int:
    return sum(int((program.best_tokens(part) != best_of_all(program, part)).sum()) for part in few_rows(x))


def best_of_all(program: CpuStepProgram, x: Tensor) -> Tensor:
    """The argmax of every logit, where that is a number and the norm had one to divide by."""
    greatest, best = program.logits(x).max(dim=-1)
    return best.where(greatest.isfinite() & x.square().sum(dim=-1).isfinite(), NO_BEST_TOKEN)


def a_random_head(vocab: int, hidden: int) -> Tensor:
    return draw(vocab, hidden, seed=11)


def all_alike(vocab: int, hidden: int) -> Tensor:
    return draw(1, hidden, seed=11).expand(vocab, hidden)


def closer_than_codes_tell(vocab: int, hidden: int) -> Tensor:
    """One output and its likes, each of which differs from it by an eighth of a code's step."""
    return draw(1, hidden, seed=11) + draw(vocab, hidden, seed=12) / 400


def apart_by_the_last_bit(vocab: int, hidden: int) -> Tensor:
    """Each is one output but for the last bit of one of its weights."""
    head = draw(1, hidden, seed=11).bfloat16().repeat(vocab, 1)
    bits, outputs = head.view(torch.int16), torch.arange(vocab)
    bits[outputs, outputs % hidden] += 1
    return head


def whole_codes(vocab: int, hidden: int) -> Tensor:
    """Nothing is lost of the head: each output is one row of codes but for one of them, which is off by one."""
    head = draw_codes(-120, 120, 1, hidden).repeat(vocab, 1)
    outputs = torch.arange(vocab)
    head[outputs, outputs % hidden] += 1
    head[:, hidden // 2] = 127
    return head.float()


def one_giant(vocab: int, hidden: int) -> Tensor:
    head = a_random_head(vocab, hidden)
    head[:, hidden // 2] = 1e4
    return head


def with_numbers(*numbers: float) -> Callable[[int, int], Tensor]:
    """In some outputs of each panel, among them the last one."""

    def make(vocab: int, hidden: int) -> Tensor:
        head = a_random_head(vocab, hidden)
        for index, number in enumerate(numbers):
            head[vocab - 1 - index :: 9, hidden // 2] = number
        return head

    return make


HEADS: dict[str, Callable[[int, int], Tensor]] = {
    "random": a_random_head,
    "zeros": torch.zeros,
    "all alike": all_alike,
    "closer than codes tell": closer_than_codes_tell,
    "apart by the last bit": apart_by_the_last_bit,
    "whole codes": whole_codes,
    "one giant": one_giant,
    "huge": lambda vocab, hidden: a_random_head(vocab, hidden) * 1e35,
    "tiny": lambda vocab, hidden: a_random_head(vocab, hidden) * 1e-36,
    "a NaN": with_numbers(float("nan")),
    "infinities": with_numbers(float("inf"), float("-inf")),
    "huge ones": with_numbers(3e38, -3e38, 1e30),
}
SIZES = ((1, 1), (31, 3), (33, 40), (70, 66), (1000, 64), (3001, 130))
INPUTS: dict[str, Callable[[Tensor], object]] = {
    "plain": lambda x: None,
    "one giant": lambda x: x[:, x.shape[1] // 2].fill_(1e4),
    "rows of zeros": lambda x: x[::3].zero_(),
    "rows that are not numbers": lambda x: x[::3, -1].fill_(float("nan")),
    "rows that are infinite": lambda x: x[::3, -1].fill_(float("inf")),
}


@pytest.mark.parametrize("norm", [1.0, 1e-37, 1e20, 1e37])
@pytest.mark.parametrize("name", HEADS)
def test_the_best_tokens_are_those_of_every_logit(
    name: str, norm: float, functions: Mapping[torch.dtype, Functions]
) -> None:
    for vocab, hidden in SIZES:
        program = head_alone(HEADS[name](vocab, hidden), draw(hidden, seed=4) * norm, functions)
        for change in INPUTS.values():
            x = draw(36, hidden, seed=5)
            change(x)
            assert wrong_tokens(program, x) == 0, f"{vocab} tokens, {hidden} inputs"


@pytest.mark.parametrize("name", ["random", "closer than codes tell", "all alike", "a NaN"])
def test_threads_change_nothing(name: str, functions: Mapping[torch.dtype, Functions]) -> None:
    program = head_alone(HEADS[name](1000, 64), torch.ones(64), functions)
    for threads in (1, 2, 3):
        with on_threads(threads):
            for _ in range(2):
                assert wrong_tokens(program, draw(36, 64, seed=5)) == 0


@pytest.mark.parametrize(
    ("name", "giant", "parts"),
    [("closer than codes tell", 1.0, ["losses"]), ("whole codes", 4e3, ["lengths", "losses"])],
    ids=["what the weights lose", "what the rows lose"],
)
def test_no_part_of_the_bound_can_be_left_out(
    name: str,
    giant: float,
    parts: list[str],
    functions: Mapping[torch.dtype, Functions],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whole codes lose nothing themselves; a row's giant leaves few codes for its other numbers."""

    def too_small(head: PanelWeight) -> HeadScreen:
        screen = screen_of(head)
        return replace(screen, **{part: torch.zeros_like(getattr(screen, part)) for part in parts})

    x = draw(90, 130, seed=5)
    x[:, 65] = giant
    assert wrong_tokens(head_alone(HEADS[name](3001, 130), torch.ones(130), functions), x) == 0
    monkeypatch.setattr(decoder_layout, "screen_of", too_small)
    assert wrong_tokens(head_alone(HEADS[name](3001, 130), torch.ones(130), functions), x) > 0


def test_sizes_of_what_rounding_loses() -> None:
    """Not less than they are, and hardly more."""
    for head in (a_random_head(70, 66), one_giant(70, 66), a_random_head(70, 576) * 1e-20):
        packed = pack(DenseWeight(head.bfloat16()))
        screen, exact = screen_of(packed), unpack(packed).double()
        lost = exact - unpack(screen.codes).double()
        for found, numbers in ((screen.lengths, exact), (screen.losses, lost)):
            sizes, bounds = numbers.norm(dim=1), found.flatten()[:70].double()
            assert (sizes <= bounds).all()
            assert (bounds <= sizes * 1.01).all()
        assert screen.longest == screen.lengths.max()
