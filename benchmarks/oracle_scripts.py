"""Answers with known delays, by the prompt that asks for them."""

from __future__ import annotations

import random

from quantgate.targets.openai.wire_script import DONE, WireAnswer, completion, steady, usage

MS = 1_000_000
SERVICE_MS = 50
"""Of the requests that queue for one slot."""
DELIVERY_TOKENS = 4
"""Of the answers to a load whose delivery is measured."""


def _tokens(*chunks: tuple[int, int]) -> WireAnswer:
    """Chunks of (delay in ms, tokens), their token ids beside their text."""
    parts = [(delay * MS, completion("x" * count, token_ids=[7] * count)) for delay, count in chunks]
    total = sum(count for _, count in chunks)
    return WireAnswer((*parts, (0, completion("", finish_reason="length") + usage(1, total) + DONE)))


def _burst() -> WireAnswer:
    one = completion("a") + completion("b") + completion("c")
    return WireAnswer(
        ((60 * MS, one), (40 * MS, one), (0, completion("", finish_reason="length") + usage(1, 6) + DONE))
    )


def _split() -> WireAnswer:
    """A character of four bytes whose halves come 20 ms apart."""
    whole = completion("🙂", finish_reason="length") + usage(1, 1) + DONE
    cut = whole.index("🙂".encode()) + 2
    return WireAnswer(((30 * MS, whole[:cut]), (20 * MS, whole[cut:])))


def _uneven(seed: int) -> WireAnswer:
    draw = random.Random(seed)
    return steady(tuple(draw.randint(3, 40) * MS for _ in range(20)))


_SCRIPTS: dict[str, WireAnswer] = {
    "steady": steady((50 * MS,) + (10 * MS,) * 19),
    "uneven": _uneven(seed=1),
    "chunked": _tokens((40, 2), (30, 3), (20, 1), (25, 4)),
    "burst": _burst(),
    "stall": steady(tuple(delay * MS for delay in (20, 10, 10, 300, 10, 10))),
    "split": _split(),
    "cut": WireAnswer(((30 * MS, completion("a")), (20 * MS, completion("b"))), cut="closed"),
    "busy": WireAnswer(((0, b'{"error": {"message": "busy"}}'),), 429),
    "broken": WireAnswer(((0, b'{"error": {"message": "broken"}}'),), 500),
    "malformed": WireAnswer(((30 * MS, completion("a")), (20 * MS, b"data: {oops\n\n"))),
    "queued": steady((SERVICE_MS * MS,)),
    "delivery": steady((20 * MS,) + (10 * MS,) * (DELIVERY_TOKENS - 1)),
}
KINDS = tuple(kind for kind in _SCRIPTS if kind not in ("queued", "delivery"))


def script_of(prompt: str) -> WireAnswer:
    """`prompt` is the kind of the answer, a hyphen and whatever tells the request from others."""
    return _SCRIPTS[prompt.partition("-")[0]]
