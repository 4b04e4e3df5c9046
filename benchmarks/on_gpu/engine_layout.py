"""Where there is no GPU: the same model on no memory, its weights in bytes, and its steps compiled."""

from __future__ import annotations

import torch
from benchmarks.on_gpu.engine_speed import LOAD, EngineSpeed
from benchmarks.on_gpu.kernel_set import kernels_for
from benchmarks.on_gpu.llama import BLOCK_SIZE
from benchmarks.on_gpu.place import Place, launching
from benchmarks.on_gpu.random_llama import random_llama

from quantgate_engine.executor.kv_format import KVFormat
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.decoder import Decoder
from quantgate_engine.model.linear_layers import linear_layers
from quantgate_engine.model.loader import WeightLoader
from quantgate_engine.quant.layer_schemes import find_schemes
from quantgate_kernels.step_rows import StepRows


def engine_layout(scheme: str, place: Place) -> tuple[list[EngineSpeed], list[str]]:
    """Rows without times, and the kernels that the steps launch."""
    decoder = _decoder(scheme, place)
    cache = KVFormat(torch.float16).allocate(decoder.config, BLOCK_SIZE, BLOCK_SIZE, place.torch_device).layers
    weight_bytes = decoder.weights.stored_bytes()
    rows: list[EngineSpeed] = []
    kernels: set[str] = set()
    decodes = [("decode", batch, 1, LOAD.context + LOAD.answer) for batch in LOAD.batches]
    for phase, batch, new, context in (("prefill", 1, LOAD.prompt, LOAD.prompt), *decodes):
        with launching(place) as names, torch.inference_mode():
            decoder.best_tokens(decoder.hidden_states(_rows(batch, new, context), cache))
        kernels.update(names)
        rows += [EngineSpeed(scheme, phase, batch, graphs, weight_bytes) for graphs in (False, True)]
    return rows, sorted(kernels)


def _decoder(scheme: str, place: Place) -> Decoder:
    chosen, device = find_schemes(scheme), place.torch_device
    kernels = kernels_for(place)
    precision = chosen.precision(device, kernels)
    layers = linear_layers(chosen, precision, device, stored=None, perturbation=None)
    with random_llama(device) as folder:
        config = read_decoder_config(folder.path)
        weights = WeightLoader(config, layers, precision, kernels, device).load(folder.path)
    return Decoder(config, weights, kernels, precision.compute, LOAD.prompt + BLOCK_SIZE)


def _rows(batch: int, new: int, context: int) -> StepRows:
    blocks = tuple(range(-(-context // BLOCK_SIZE)))
    starts = [new * index for index in range(batch + 1)]
    return StepRows([0] * (new * batch), starts, [context] * batch, [blocks] * batch, BLOCK_SIZE)
