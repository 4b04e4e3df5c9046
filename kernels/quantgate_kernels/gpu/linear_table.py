"""Launch parameters of products and of what belongs to them, and how inputs are divided; no torch, no Triton."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_kernels.gpu.launch_table import Launch, padded, table_of


@dataclass(frozen=True, slots=True)
class LinearLaunch:
    """The tile of a program: rows of activations, outputs, and inputs that are read at once."""

    rows: int
    outputs: int
    inputs: int
    num_warps: int
    num_stages: int

    def options(self) -> dict[str, int | bool]:
        """As `Launch.options`."""
        return {"num_warps": self.num_warps, "num_stages": self.num_stages, "enable_fp_fusion": True}


FEW_ROWS = 16
"""Up to so many rows, reading the weight is the cost, and matrix instructions take no fewer."""

LinearTable = dict[str, tuple[LinearLaunch, LinearLaunch]]
"""Architecture -> for few rows, for more."""

_WORDS: LinearTable = {
    "sm80": (LinearLaunch(16, 64, 128, 4, 4), LinearLaunch(64, 128, 64, 8, 3)),
    "sm90": (LinearLaunch(16, 64, 128, 4, 4), LinearLaunch(64, 128, 64, 8, 3)),
    "sm100": (LinearLaunch(16, 64, 128, 4, 4), LinearLaunch(64, 128, 64, 8, 3)),
    "gfx942": (LinearLaunch(16, 64, 128, 4, 2), LinearLaunch(64, 128, 64, 4, 2)),
}


def words_launch(architecture: str, rows: int, *, deterministic: bool = False) -> LinearLaunch:
    """For products with a `WordWeight`."""
    return _of(_WORDS, architecture, rows, deterministic=deterministic)


_INT8: LinearTable = {
    "sm80": (LinearLaunch(16, 64, 128, 4, 4), LinearLaunch(64, 128, 128, 8, 3)),
    "sm90": (LinearLaunch(16, 64, 256, 4, 4), LinearLaunch(64, 128, 128, 8, 3)),
    "sm100": (LinearLaunch(16, 64, 256, 4, 4), LinearLaunch(64, 128, 128, 8, 3)),
    "gfx942": (LinearLaunch(16, 64, 128, 4, 2), LinearLaunch(64, 128, 128, 4, 2)),
}


def int8_launch(architecture: str, rows: int) -> LinearLaunch:
    """For products of codes with codes, which are exact however they are summed."""
    return _of(_INT8, architecture, rows, deterministic=False)


def _of(table: LinearTable, architecture: str, rows: int, *, deterministic: bool) -> LinearLaunch:
    """deterministic: the same for any number of rows, so that the instructions which sum a row up are the same."""
    few, many = table[table_of(architecture)]
    return few if rows <= FEW_ROWS and not deterministic else many


MOST_ROWS_BY_WORDS = 1024
"""More rows are multiplied by numbers that were made from the words first. To write and read these again takes as long
as the product of 300 to 600 rows, by the memory and the arithmetic of the architectures here: less than it saves."""

PROGRAMS_PER_PROCESSOR = 2
LEAST_TILES = 4
"""Of inputs in a split: fewer would be over before the first has come."""

FIXED_SPLIT_INPUTS = 1024
"""Of a split in the deterministic mode, whatever the rows; a multiple of every tile."""


def tiles_of_split(
    launch: LinearLaunch, rows: int, outputs: int, inputs: int, processors: int, *, deterministic: bool = False
) -> int:
    """Tiles of inputs in a split, so that two programs for each of the device's processors share the product."""
    if deterministic:
        return FIXED_SPLIT_INPUTS // launch.inputs
    programs = -(-rows // launch.rows) * -(-outputs // launch.outputs)
    wanted = max(1, PROGRAMS_PER_PROCESSOR * processors // programs)
    tiles = -(-inputs // launch.inputs)
    return max(LEAST_TILES, -(-tiles // wanted))


MOST_INPUTS_IN_REGISTERS = 32_768
_NUMBERS_PER_WARP, _MOST_WARPS = 1024, 16


def tokens_launch(inputs: int) -> Launch:
    """For rows that are quantized; `tile` is in rows."""
    if inputs > MOST_INPUTS_IN_REGISTERS:
        raise ValueError(f"a row of {inputs} numbers does not fit in a program; {MOST_INPUTS_IN_REGISTERS} do")
    return Launch(tile=1, num_warps=min(_MOST_WARPS, max(1, padded(inputs) // _NUMBERS_PER_WARP)), num_stages=1)


DEQUANTIZE = LinearLaunch(rows=1, outputs=32, inputs=256, num_warps=8, num_stages=1)
"""For weights that become 16-bit numbers before a dense product; `rows` says nothing."""

SUM = Launch(tile=512, num_warps=4, num_stages=1)
"""For sums over splits; `tile` is in numbers of the product."""
