"""The checkpoints of other libraries are as their README lists them, and hold what it says, by arithmetic of our own.

Nothing of the engine is used: each format is unpacked here once more, value by value, in plain Python, and compared
with what the library itself expects of the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

FIXTURES = Path(__file__).parent / "fixtures"
LISTED = dict(
    reversed(line) for line in re.findall(r"^([0-9a-f]{64})  (\S+)$", (FIXTURES / "README.md").read_text(), re.M)
)
CHECKPOINTS = sorted({name.split("/")[0] for name in LISTED})
SAMPLED_ROWS = (0, 1, 17, 31)


def test_every_file_is_listed_with_its_hash() -> None:
    files = [
        path for path in FIXTURES.glob("*/*") if path.is_file() and path.parent.name not in ("make", "__pycache__")
    ]
    found = {path.relative_to(FIXTURES).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert found == LISTED


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_each_weight_unpacks_to_what_its_library_expects(checkpoint: str) -> None:
    folder = FIXTURES / checkpoint
    config = json.loads((folder / "config.json").read_text())["quantization_config"]
    saved, expected = load_file(folder / "model.safetensors"), load_file(folder / "expected.safetensors")
    layers = [name.removesuffix(".weight") for name in expected if name.endswith("_proj.weight")]
    assert len(layers) == 7
    unpack_row = ROW_OF_METHOD[config["quant_method"]]
    for layer in layers:
        tensors = {name.removeprefix(f"{layer}."): tensor for name, tensor in saved.items() if name.startswith(layer)}
        weight = expected[f"{layer}.weight"]
        for row in SAMPLED_ROWS:
            found = torch.tensor(unpack_row(tensors, config, row, weight.shape[1]))
            torch.testing.assert_close(found, weight[row], rtol=1e-6, atol=1e-7, msg=_at(layer, row))


def _at(layer: str, row: int) -> Callable[[str], str]:
    return lambda message: f"{layer}, row {row}: {message}"


def _field(words: list[int], index: int, bits: int) -> int:
    """Field `index` of a stream of 32-bit words, lowest bits first."""
    stream = sum((word & 0xFFFFFFFF) << (32 * position) for position, word in enumerate(words))
    return stream >> (index * bits) & ((1 << bits) - 1)


def _gptq_row(tensors: dict[str, Tensor], config: dict[str, Any], row: int, columns: int) -> list[float]:
    bits = config["bits"]
    # The first format stores each zero less one.
    added = 0 if config.get("checkpoint_format") == "gptq_v2" else 1
    words = tensors["qweight"][:, row].tolist()
    zeros = [(_field(line, row, bits) + added) % (1 << bits) for line in tensors["qzeros"].tolist()]
    scales = tensors["scales"][:, row].float().tolist()
    groups = tensors["g_idx"].tolist()
    return [(_field(words, i, bits) - zeros[groups[i]]) * scales[groups[i]] for i in range(columns)]


def _awq_row(tensors: dict[str, Tensor], config: dict[str, Any], row: int, columns: int) -> list[float]:
    group_size = config["group_size"]
    # Output 8n + i lies in nibble (0, 4, 1, 5, 2, 6, 3, 7)[i] of word n.
    word, nibble = row // 8, (0, 4, 1, 5, 2, 6, 3, 7)[row % 8]
    codes = [_field([value], nibble, 4) for value in tensors["qweight"][:, word].tolist()]
    zeros = [_field([value], nibble, 4) for value in tensors["qzeros"][:, word].tolist()]
    scales = tensors["scales"][:, row].float().tolist()
    return [(codes[i] - zeros[i // group_size]) * scales[i // group_size] for i in range(columns)]


def _compressed_row(tensors: dict[str, Tensor], config: dict[str, Any], row: int, columns: int) -> list[float]:
    scales = tensors["weight_scale"][row].float().tolist()
    per_group = columns // len(scales)
    if "weight" in tensors:
        return [code * scales[0] for code in tensors["weight"][row].tolist()]
    words = tensors["weight_packed"][row].tolist()
    bits = len(words) * 32 // columns
    middle = 1 << (bits - 1)
    zeros = [middle] * len(scales)
    if "weight_zero_point" in tensors:
        zeros = [_field(column, row, bits) for column in tensors["weight_zero_point"].T.tolist()]
    return [(_field(words, i, bits) - zeros[i // per_group]) * scales[i // per_group] for i in range(columns)]


def _bitsandbytes_row(tensors: dict[str, Tensor], config: dict[str, Any], row: int, columns: int) -> list[float]:
    if "SCB" in tensors:
        return [code * tensors["SCB"][row].item() / 127 for code in tensors["weight"][row].tolist()]
    (state_name,) = [name for name in tensors if "quant_state" in name]
    state = json.loads(bytes(tensors[state_name].tolist()))
    table, packed = tensors["weight.quant_map"].tolist(), tensors["weight"].flatten().tolist()
    values = []
    for place in range(row * columns, (row + 1) * columns):
        code = packed[place // 2] >> 4 if place % 2 == 0 else packed[place // 2] & 15
        values.append(table[code] * _block_scale(tensors, state, place // state["blocksize"]))
    return values


def _block_scale(tensors: dict[str, Tensor], state: dict[str, float], block: int) -> float:
    scale = tensors["weight.absmax"][block].item()
    if "nested_blocksize" not in state:
        return scale
    outer = tensors["weight.nested_absmax"][math.floor(block / state["nested_blocksize"])].item()
    return tensors["weight.nested_quant_map"][int(scale)].item() * outer + state["nested_offset"]


ROW_OF_METHOD = {
    "gptq": _gptq_row,
    "awq": _awq_row,
    "compressed-tensors": _compressed_row,
    "bitsandbytes": _bitsandbytes_row,
}
