"""Launch parameters: literal tables and pure functions of shape, dtype and architecture; no torch, no Triton.

Nothing is tuned while it serves: the same shapes run the same machine code on every machine of an architecture.
"""

from __future__ import annotations

from dataclasses import dataclass

ARCHITECTURES = ("sm80", "sm90", "sm100", "gfx942")
"""Those with tables of their own; any other takes the table of the one whose instructions and memory it shares."""

SHARED_MEMORY = {"sm80": 101_376, "sm90": 232_448, "sm100": 232_448, "gfx942": 65_536}
"""Bytes a program may have. An A100 has more than is said here for sm80: GeForce cards with its instructions do not."""


@dataclass(frozen=True, slots=True)
class Launch:
    """`tile`: rows of the dimension that the kernel walks over or splits its grid by."""

    tile: int
    num_warps: int
    num_stages: int

    def options(self) -> dict[str, int | bool]:
        """For Triton. Multiplications and additions fuse in every version of it, not only where that is its default."""
        return {"num_warps": self.num_warps, "num_stages": self.num_stages, "enable_fp_fusion": True}


def table_of(architecture: str) -> str:
    """`sm89` -> `sm80`: the architecture whose table serves this one."""
    if not architecture.startswith("sm"):
        return "gfx942"
    number = int(architecture.removeprefix("sm"))
    if number // 10 == 9:
        return "sm90"
    # sm_120 has the instructions of sm_89 and as little shared memory.
    return "sm100" if 100 <= number < 120 else "sm80"


def padded(size: int) -> int:
    """The power of two that holds `size`: Triton's tiles have no other sides."""
    return 1 << (size - 1).bit_length()


_DECODE: dict[tuple[str, int, int], Launch] = {
    # (architecture, bytes of a stored number, padded head_dim). Codes have tiles of no fewer tokens than a program has
    # threads: of smaller ones several threads read the same entries of the table and the same scales.
    ("sm80", 2, 64): Launch(64, 4, 2),
    ("sm80", 2, 128): Launch(32, 4, 3),
    ("sm80", 1, 64): Launch(128, 4, 2),
    ("sm80", 1, 128): Launch(128, 4, 2),
    ("sm90", 2, 64): Launch(64, 4, 3),
    ("sm90", 2, 128): Launch(64, 4, 3),
    ("sm90", 1, 64): Launch(128, 4, 3),
    ("sm90", 1, 128): Launch(128, 4, 2),
    ("sm100", 2, 64): Launch(64, 4, 3),
    ("sm100", 2, 128): Launch(64, 4, 3),
    ("sm100", 1, 64): Launch(128, 4, 3),
    ("sm100", 1, 128): Launch(128, 4, 2),
    ("gfx942", 2, 64): Launch(64, 4, 2),
    ("gfx942", 2, 128): Launch(32, 4, 2),
    ("gfx942", 1, 64): Launch(64, 1, 2),
    ("gfx942", 1, 128): Launch(64, 1, 2),
}

LARGEST_HEAD_DIM = 128
LARGEST_GROUP = 32
"""Query heads that share a key head. A program for decodes has them all; of 64, over codes, it spills registers."""


def decode_launch(architecture: str, stored_bytes: int, head_dim: int) -> Launch:
    """`tile` is in tokens of the context. float32 caches are for tests and take the parameters of 16 bits."""
    return _DECODE[_attention_key(architecture, stored_bytes, head_dim)]


def _attention_key(architecture: str, stored_bytes: int, head_dim: int) -> tuple[str, int, int]:
    if head_dim > LARGEST_HEAD_DIM:
        raise ValueError(f"attention has no launch parameters for head_dim {head_dim}; {LARGEST_HEAD_DIM} is the most")
    return table_of(architecture), min(stored_bytes, 2), max(64, padded(head_dim))


@dataclass(frozen=True, slots=True)
class PrefillLaunch(Launch):
    """`rows`: of a program's matrix products, each a new token and one of the query heads that share a key head."""

    rows: int


_PREFILL: dict[tuple[str, int, int], PrefillLaunch] = {
    # As for decodes. Four warps with 128 rows and tiles of 64 tokens have no register to spare over 16-bit numbers: on
    # sm80 and sm100, to divide the rows among groups of some sizes makes them spill.
    ("sm80", 2, 64): PrefillLaunch(64, 8, 2, 128),
    ("sm80", 2, 128): PrefillLaunch(64, 8, 2, 128),
    ("sm80", 1, 64): PrefillLaunch(64, 4, 2, 64),
    ("sm80", 1, 128): PrefillLaunch(64, 4, 2, 64),
    ("sm90", 2, 64): PrefillLaunch(64, 4, 3, 128),
    ("sm90", 2, 128): PrefillLaunch(64, 8, 2, 128),
    ("sm90", 1, 64): PrefillLaunch(64, 4, 2, 128),
    ("sm90", 1, 128): PrefillLaunch(64, 8, 2, 128),
    ("sm100", 2, 64): PrefillLaunch(128, 8, 2, 128),
    ("sm100", 2, 128): PrefillLaunch(64, 8, 2, 128),
    ("sm100", 1, 64): PrefillLaunch(64, 4, 2, 128),
    ("sm100", 1, 128): PrefillLaunch(64, 8, 2, 128),
    ("gfx942", 2, 64): PrefillLaunch(64, 4, 2, 128),
    ("gfx942", 2, 128): PrefillLaunch(32, 4, 2, 128),
    ("gfx942", 1, 64): PrefillLaunch(64, 4, 2, 128),
    ("gfx942", 1, 128): PrefillLaunch(32, 4, 2, 128),
}


def prefill_launch(architecture: str, stored_bytes: int, head_dim: int) -> PrefillLaunch:
    """As for decodes."""
    return _PREFILL[_attention_key(architecture, stored_bytes, head_dim)]


GATE = Launch(tile=2048, num_warps=4, num_stages=1)
"""`tile` is in numbers of a row: 16 bytes of 16-bit numbers for each thread of the largest wavefronts."""

COPY = Launch(tile=2048, num_warps=4, num_stages=1)
"""`tile` is in words of four bytes."""

_NORM_WIDE = Launch(tile=1, num_warps=8, num_stages=1)
_NORM_ROW = Launch(tile=1, num_warps=4, num_stages=1)
_NORM_HEADS = Launch(tile=8, num_warps=4, num_stages=1)


def norm_launch(size: int) -> Launch:
    """`tile` is in rows: some at once where they are heads, one where it is a whole token's."""
    if size <= LARGEST_HEAD_DIM:
        return _NORM_HEADS
    return _NORM_ROW if size <= 4096 else _NORM_WIDE


MERGE = Launch(tile=8, num_warps=2, num_stages=1)
"""`tile` is in splits: as many are read at once."""

_ROTATE_FEW = Launch(tile=1, num_warps=1, num_stages=1)
_ROTATE_MANY = Launch(tile=16, num_warps=4, num_stages=1)
_MANY_ROWS = 128


def rotate_launch(rows: int, *, fixed: bool = False) -> Launch:
    """`tile` is in rows: one where there are few, so that every processor gets work. fixed: the same for any number."""
    return _ROTATE_FEW if rows < _MANY_ROWS and not fixed else _ROTATE_MANY


DRAW = Launch(tile=1024, num_warps=4, num_stages=1)
"""`tile` is in tokens of the vocabulary."""

BEST = Launch(tile=1, num_warps=1, num_stages=1)
"""For the best of a row's tiles; `tile` is in rows."""
