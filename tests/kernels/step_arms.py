"""One tiny model computed in three ways: by the step program, and layer by layer in 16 bits and in 32 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tests.engine.tiny_model import save_tiny_model
from tests.kernels.group_schemes import GROUP_SCHEMES
from tests.kernels.step_scripts import BLOCK_SIZE, Script
from torch import Tensor
from typing_extensions import override

from quantgate_engine.executor.batch_input import rows_of
from quantgate_engine.executor.kv_format import KV_FORMATS
from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.model.config import DecoderConfig, read_decoder_config
from quantgate_engine.model.decoder import Decoder
from quantgate_engine.model.linear_layers import LayersByScheme
from quantgate_engine.model.loader import WeightLoader
from quantgate_engine.model.rope import RotaryTable
from quantgate_engine.quant.layer_schemes import LayerSchemes, find_schemes
from quantgate_engine.quant.precision import Precision
from quantgate_kernels.cpu.decoder_step import CpuStepProgram
from quantgate_kernels.cpu.library import Functions, StepFunctions
from quantgate_kernels.cpu.panels import pack
from quantgate_kernels.layers import DecoderLayer, DecoderShape, DecoderWeights, HeadNorm, Projection, TableWeight
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import DenseWeight, KVLayer, LinearWeight, ReorderedWeight, StoredWeight

CPU = torch.device("cpu")
SIXTEEN_BIT = Precision(torch.bfloat16, torch.bfloat16)
MAX_POSITIONS = 512

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, untied, biases": {"tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True},
    "mistral, window": {"model_type": "mistral", "sliding_window": 20, "tie_word_embeddings": False, "head_dim": 16},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": False},
    "qwen3": {"model_type": "qwen3", "head_dim": 64},
}
SCHEMES = ("bf16", "int8-w8a16", "int8-w8a8", "int4-g32", "int4-g64", *GROUP_SCHEMES)
Forward = Callable[[StepRows, tuple[KVLayer, ...]], Tensor]


class PlainForms(ReferenceKernels):
    """Keeps every weight in the form that its scheme makes."""

    @override
    def stored_form(self, weight: LinearWeight, compute: torch.dtype, *, split: bool = False) -> StoredWeight:
        return weight


@dataclass(frozen=True)
class Model:
    """A tiny checkpoint under a scheme, its weights as the scheme makes them for 16-bit activations."""

    config: DecoderConfig
    weights: DecoderWeights

    @property
    def shape(self) -> DecoderShape:
        config = self.config
        return DecoderShape(
            hidden=config.hidden_size,
            heads=config.num_heads,
            kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            ffn=config.ffn_size,
            norm_eps=config.rms_norm_eps,
            attention_scale=config.head_dim**-0.5,
            windows=tuple(config.windows),
        )


def load_model(folder: Path, scheme: str, **changes: Any) -> Model:
    """Saves the checkpoint in `folder` where it is not there yet."""
    if not (folder / "config.json").exists():
        save_tiny_model(folder, **changes)
    config = read_decoder_config(folder)
    chosen = LayerSchemes(GROUP_SCHEMES[scheme]) if scheme in GROUP_SCHEMES else find_schemes(scheme)
    layers = LayersByScheme(chosen, SIXTEEN_BIT, CPU)
    loader = WeightLoader(config, layers, SIXTEEN_BIT, PlainForms(), CPU)
    return Model(config, loader.load(folder))


def layer_by_layer(model: Model, dtype: torch.dtype) -> Forward:
    """By the reference kernels, with activations in `dtype`."""
    weights = model.weights if dtype == torch.bfloat16 else _with_projections(model.weights, _widened, _wide_table)
    return Decoder(model.config, weights, PlainForms(), dtype, MAX_POSITIONS).hidden_states


def step_functions(functions: Mapping[torch.dtype, Functions]) -> StepFunctions:
    """Those of a library: the step program computes in 16 bits."""
    step = functions[torch.bfloat16].step
    assert step is not None
    return step


def make_program(model: Model, functions: StepFunctions) -> CpuStepProgram:
    weights = _with_projections(model.weights, _packed, _packed_table)
    rope = RotaryTable(model.config.rope.rotation(model.config.head_dim, MAX_POSITIONS), MAX_POSITIONS, CPU)
    return CpuStepProgram(functions, weights, model.shape, rope.angles)


def by_program(model: Model, functions: StepFunctions) -> Forward:
    return make_program(model, functions).hidden_states


def cache_of(model: Model, blocks: int, kv_dtype: KVDtypeName, dtype: torch.dtype) -> tuple[KVLayer, ...]:
    """Nothing may be read that was not written: numbers are NaN, and so are the scales of codes."""
    cache = KV_FORMATS[kv_dtype](dtype).allocate(model.config, blocks, BLOCK_SIZE, CPU).layers
    for layer in cache:
        for tensor in layer.tensors():
            tensor.fill_(77 if tensor.dtype == torch.int8 else float("nan"))
    return cache


def play(forward: Forward, script: Script, cache: tuple[KVLayer, ...]) -> list[Tensor]:
    """-> the hidden states of each sequence's tokens, [tokens, hidden]."""
    parts: list[list[Tensor]] = [[] for _ in script.sequences]
    with torch.inference_mode():
        for members, sequences in script.steps():
            # A copy: whoever computes them may use the memory again.
            hidden = forward(rows_of(sequences, BLOCK_SIZE), cache).clone()
            sizes = [len(sequence.token_ids) for sequence in sequences]
            for member, rows in zip(members, hidden.split(sizes), strict=True):
                parts[member].append(rows)
    return [torch.cat(part) for part in parts]


def logits_of(model: Model, hidden: list[Tensor]) -> Tensor:
    """float64 [tokens of all sequences, vocabulary]: the final norm and the head add no error of their own."""
    rows = torch.cat(hidden).double()
    normed = rows / (rows.square().mean(-1, keepdim=True) + model.config.rms_norm_eps).sqrt()
    return (normed * model.weights.final_norm.double()) @ dense(model.weights.head).double().t()


def dense(table: TableWeight) -> Tensor:
    assert isinstance(table, DenseWeight)
    return table.weight


def _with_projections(
    weights: DecoderWeights,
    change: Callable[[StoredWeight, bool], StoredWeight],
    change_table: Callable[[TableWeight], TableWeight],
) -> DecoderWeights:
    """change: (weight, whether it is that of gates and ups)."""

    def projection(given: Projection, split: bool = False) -> Projection:
        return Projection(change(given.weight, split), None if given.bias is None else given.bias.float())

    def layer(given: DecoderLayer) -> DecoderLayer:
        norm = given.head_norm
        return DecoderLayer(
            attention_norm=given.attention_norm.float(),
            query_key_value=projection(given.query_key_value),
            head_norm=None if norm is None else HeadNorm(norm.query.float(), norm.key.float()),
            attention_output=projection(given.attention_output),
            ffn_norm=given.ffn_norm.float(),
            gate_up=projection(given.gate_up, split=True),
            down=projection(given.down),
        )

    embedding = change_table(weights.embedding)
    return DecoderWeights(
        embedding=embedding,
        layers=tuple(map(layer, weights.layers)),
        final_norm=weights.final_norm.float(),
        head=embedding if weights.head is weights.embedding else change_table(weights.head),
    )


def _widened(weight: StoredWeight, split: bool) -> StoredWeight:
    """The same numbers for activations in float32: codes stay codes, and what multiplies them is widened."""
    if isinstance(weight, DenseWeight):
        return DenseWeight(weight.weight.float())
    if isinstance(weight, ReorderedWeight):
        return replace(weight, weight=_widened(weight.weight, split))  # type: ignore[arg-type]  # orders are not nested
    return replace(weight, scales=weight.scales.float())  # type: ignore[union-attr, arg-type]  # plain forms have scales


def _wide_table(table: TableWeight) -> TableWeight:
    return DenseWeight(dense(table).float())


def _packed(weight: StoredWeight, split: bool) -> StoredWeight:
    if isinstance(weight, ReorderedWeight):
        return replace(weight, weight=_packed(weight.weight, split))  # type: ignore[arg-type]  # orders are not nested
    return pack(weight, split=split)  # type: ignore[arg-type]  # plain forms can all be packed


def _packed_table(table: TableWeight) -> TableWeight:
    return pack(DenseWeight(dense(table)))
