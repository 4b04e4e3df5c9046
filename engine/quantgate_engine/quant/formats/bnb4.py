"""bitsandbytes' 4-bit layout: the flat weight in blocks, two codes to a byte, the first in the high half.

weight               uint8 [out * in / 2, 1], or the same bytes as another dtype
weight.absmax        float32 [blocks]; nested: uint8 [blocks]
weight.quant_map     float32 [16], the table
weight.quant_state.bitsandbytes__nf4 (or __fp4)   uint8: JSON with quant_type, blocksize, dtype, shape
weight.nested_absmax, weight.nested_quant_map     nested only, with nested_blocksize and nested_offset in the JSON
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError
from torch import Tensor
from torch.nn.functional import pad

from quantgate_engine.quant.formats.config.config_errors import first_fault
from quantgate_engine.quant.formats.layer_tensors import LayerTensors
from quantgate_engine.quant.formats.nested_absmax import NestedAbsmax, nest
from quantgate_engine.quant.formats.storage import ReadLayer
from quantgate_engine.quant.formats.table_codes import TableCodes, nearest_codes
from quantgate_kernels.bnb.nf4 import NF4_TABLE

Kind = Literal["nf4", "fp4"]

BLOCK_SIZE = 64
TABLES: dict[Kind, tuple[float, ...]] = {
    "nf4": NF4_TABLE,
    # A sign and a magnitude of three bits, in twelfths.
    "fp4": tuple(sign * twelfths / 12 for sign in (1, -1) for twelfths in (0, 0.0625, 8, 12, 4, 6, 2, 3)),
}
_BYTE_DTYPES = (torch.uint8, torch.bfloat16, torch.float16, torch.float32)
_TABLE_TOLERANCE = 1e-3
"""Tables that libraries round to four digits are the same; that of another kind is far off."""


class _QuantState(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    quant_type: Kind
    blocksize: PositiveInt
    shape: tuple[PositiveInt, PositiveInt]
    nested_blocksize: PositiveInt | None = None
    nested_offset: float | None = None


@dataclass(frozen=True, slots=True)
class Bnb4Storage:
    """The kind, the blocks and the nesting are told by the layer's own tensors."""

    int8_activations: bool = False

    @property
    def summary(self) -> str:
        return "4-bit bitsandbytes"

    @property
    def tensor_names(self) -> tuple[str, ...]:
        maxima = ("weight.absmax", "weight.quant_map", "weight.nested_absmax", "weight.nested_quant_map")
        return ("weight", *maxima, *map(_state_name, TABLES))

    def read(self, tensors: LayerTensors, shape: tuple[int, int]) -> ReadLayer:
        state = _read_state(tensors, shape)
        why = f"{self.summary} ({state.quant_type}), of {shape[0]} outputs and {shape[1]} inputs"
        count = shape[0] * shape[1]
        packed = tensors.take("weight", _BYTE_DTYPES, None, why).contiguous().view(torch.uint8).flatten()
        if packed.numel() != -(-count // 2):
            raise tensors.error(
                "weight", f"holds {packed.numel()} bytes; {why} needs {-(-count // 2)}: the file is damaged"
            )
        codes = torch.stack((packed >> 4, packed & 15), dim=-1).flatten()[:count].view(shape)
        table = _take_table(tensors, state.quant_type, why)
        absmax = _take_absmax(tensors, state, -(-count // state.blocksize), why)
        return ReadLayer(TableCodes(codes, table, absmax, state.blocksize))


def quantize_bnb4(weight: Tensor, kind: Kind, block_size: int = BLOCK_SIZE) -> TableCodes:
    """weight float32 [out, in], finite -> the nearest codes of each block over its greatest magnitude."""
    flat = weight.flatten()
    blocks = pad(flat, (0, -flat.numel() % block_size)).view(-1, block_size)
    absmax = blocks.abs().amax(dim=1)
    table = torch.tensor(TABLES[kind])
    relative = blocks * (1 / torch.where(absmax == 0, torch.ones_like(absmax), absmax)).unsqueeze(1)
    codes = nearest_codes(relative, table).flatten()[: flat.numel()].view(weight.shape)
    return TableCodes(codes, table, absmax, block_size)


def write_bnb4(weight: TableCodes, kind: Kind, *, nested: bool = False, dtype: str = "float16") -> dict[str, Tensor]:
    """The layer's tensors by what follows its name and a dot. Nesting rounds the maxima.

    dtype: of the weight before it was quantized, in which bitsandbytes gives it back.
    """
    flat = pad(weight.codes.flatten(), (0, weight.codes.numel() % 2))
    state: dict[str, object] = {
        "quant_type": kind,
        "blocksize": weight.block_size,
        "dtype": dtype,
        "shape": list(weight.shape),
    }
    tensors = {"weight": (flat[::2] << 4 | flat[1::2]).unsqueeze(1), "weight.quant_map": weight.table}
    if nested:
        maxima = nest(weight.absmax)
        tensors |= {
            "weight.absmax": maxima.codes,
            "weight.nested_absmax": maxima.scales,
            "weight.nested_quant_map": maxima.table,
        }
        state |= {
            "nested_blocksize": maxima.block_size,
            "nested_dtype": "float32",
            "nested_offset": maxima.offset,
        }
    else:
        tensors["weight.absmax"] = weight.absmax
    tensors[_state_name(kind)] = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)
    return tensors


def _state_name(kind: Kind) -> str:
    return f"weight.quant_state.bitsandbytes__{kind}"


def _read_state(tensors: LayerTensors, shape: tuple[int, int]) -> _QuantState:
    name = next((name for name in map(_state_name, TABLES) if name in tensors), _state_name("nf4"))
    stored = tensors.take(name, (torch.uint8,), None, "4-bit bitsandbytes")
    try:
        state = _QuantState.model_validate_json(bytes(stored.flatten().tolist()))
    except ValidationError as error:
        raise tensors.error(name, f"is not the JSON of a 4-bit weight ({first_fault(error)})") from None
    if not name.endswith(state.quant_type):
        raise tensors.error(name, f"says quant_type {state.quant_type}, against its own name: the file is damaged")
    if state.shape != shape:
        raise tensors.error(name, f"says the shape {list(state.shape)}; config.json calls for {list(shape)}")
    return state


def _take_table(tensors: LayerTensors, kind: Kind, why: str) -> Tensor:
    """The kind's own table: libraries compute with it whatever is stored, which is therefore only checked."""
    table = torch.tensor(TABLES[kind])
    if "weight.quant_map" in tensors:
        stored = tensors.take("weight.quant_map", (torch.float32,), (len(table),), why)
        if not bool(((stored - table).abs() <= _TABLE_TOLERANCE).all()):
            raise tensors.error("weight.quant_map", f"is not the table of {kind}: the file is damaged or mislabelled")
    return table


def _take_absmax(tensors: LayerTensors, state: _QuantState, blocks: int, why: str) -> Tensor:
    """-> float32 [blocks]"""
    if state.nested_blocksize is None:
        absmax = tensors.take("weight.absmax", (torch.float32,), (blocks,), why)
        tensors.require_finite("weight.absmax", absmax)
        return absmax
    why = f"{why}, with nested maxima"
    if state.nested_offset is None:
        raise tensors.error(_state_name(state.quant_type), "lacks nested_offset, which nested maxima need")
    table = tensors.take("weight.nested_quant_map", (torch.float32,), (256,), why)
    scales_shape = (-(-blocks // state.nested_blocksize),)
    scales = tensors.take("weight.nested_absmax", (torch.float32,), scales_shape, why)
    codes = tensors.take("weight.absmax", (torch.uint8,), (blocks,), why)
    for name, values in (("weight.nested_quant_map", table), ("weight.nested_absmax", scales)):
        tensors.require_finite(name, values)
    return NestedAbsmax(codes, table, scales, state.nested_offset, state.nested_blocksize).dequantize()
