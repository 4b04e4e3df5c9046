"""The step program, all layers in one call, against the layer-by-layer decoder of the reference kernels.

Both compute in 16 bits and round in different places, so that neither is the other's measure: both are compared with
float32 arithmetic on the same 16-bit or quantized weights, and the step program may be no further from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.own_rows import on_threads
from tests.kernels.step_arms import (
    FAMILIES,
    SCHEMES,
    Model,
    by_program,
    cache_of,
    dense,
    layer_by_layer,
    load_model,
    logits_of,
    play,
    step_functions,
)
from tests.kernels.step_scripts import LONG, SCRIPTS, Script
from torch import Tensor

from quantgate_engine.kv.settings import KVDtypeName
from quantgate_kernels.cpu.library import Functions, load_functions
from quantgate_kernels.types import KVLayer

ODD_SIZES: dict[str, Any] = {
    "hidden_size": 75,
    "intermediate_size": 101,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 10,
    "num_hidden_layers": 2,
}
"""Nothing fills a panel, a register or a step of any form; no group fits but one of all inputs."""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kernel_set_or_skip("cpu")
    return tmp_path_factory.mktemp("checkpoints")


def tiny_model(checkpoints: Path, family: str, scheme: str) -> Model:
    return load_model(checkpoints / family, scheme, **FAMILIES[family])


@dataclass(frozen=True)
class Errors:
    """Of logits: root mean square and largest; and the mean KL divergence from what is right, in nats."""

    rms: float
    largest: float
    divergence: float


def errors(found: Tensor, right: Tensor) -> Errors:
    p, q = right.log_softmax(-1), found.log_softmax(-1)
    difference = (found - right).abs()
    divergence = (p.exp() * (p - q)).sum(-1).mean()
    return Errors(float(difference.square().mean().sqrt()), float(difference.max()), float(divergence))


def assert_no_further_off(
    model: Model,
    script: Script,
    kv_dtype: KVDtypeName = "auto",
    functions: Mapping[torch.dtype, Functions] | None = None,
) -> None:
    """functions: a library's; by default this machine's.

    Of its own 16-bit noise the reference is one sample: as much, and a third more, is noise of its kind."""
    right, reference, found = (
        logits_of(model, play(forward, script, cache_of(model, script.num_blocks, kv_dtype, dtype)))
        for forward, dtype in (
            (layer_by_layer(model, torch.float32), torch.float32),
            (layer_by_layer(model, torch.bfloat16), torch.bfloat16),
            (by_program(model, step_functions(functions or load_functions())), torch.bfloat16),
        )
    )
    allowed, seen, spread = errors(reference, right), errors(found, right), float(right.std())
    # The measure itself must be able to tell: 16 bits are noise, not another model.
    assert allowed.rms < 0.1 * spread
    assert seen.rms <= 1.3 * allowed.rms
    assert seen.largest <= 1.5 * allowed.largest
    assert seen.divergence <= 1.3 * allowed.divergence + 1e-5


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_family_and_scheme(scheme: str, family: str, checkpoints: Path) -> None:
    assert_no_further_off(tiny_model(checkpoints, family, scheme), SCRIPTS["mixed"])


@pytest.mark.parametrize("kv_dtype", ["auto", "int8"])
@pytest.mark.parametrize("family", ["llama", "mistral, window"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_way_to_compute_the_same_tokens(
    script: str, family: str, kv_dtype: KVDtypeName, checkpoints: Path
) -> None:
    assert_no_further_off(tiny_model(checkpoints, family, "bf16"), SCRIPTS[script], kv_dtype)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_int8_keys_and_values_under_every_scheme(scheme: str, checkpoints: Path) -> None:
    assert_no_further_off(tiny_model(checkpoints, "qwen3", scheme), SCRIPTS["mixed"], "int8")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_more_rows_than_any_tile(scheme: str, checkpoints: Path) -> None:
    assert_no_further_off(tiny_model(checkpoints, "llama", scheme), LONG)


@pytest.mark.parametrize("kv_dtype", ["auto", "int8"])
@pytest.mark.parametrize("scheme", ["bf16", "int8-w8a16", "int8-w8a8", "int8-asym"])
def test_sizes_that_fill_nothing(scheme: str, kv_dtype: KVDtypeName, checkpoints: Path) -> None:
    model = load_model(checkpoints / "odd", scheme, **ODD_SIZES)
    for script in ("prefills", "mixed"):
        assert_no_further_off(model, SCRIPTS[script], kv_dtype)


def states(model: Model, script: Script, kv_dtype: KVDtypeName) -> tuple[list[Tensor], tuple[KVLayer, ...]]:
    """-> (hidden states, the cache after the last step)."""
    cache = cache_of(model, script.num_blocks, kv_dtype, torch.bfloat16)
    return play(by_program(model, step_functions(load_functions())), script, cache), cache


@pytest.mark.parametrize("kv_dtype", ["auto", "int8"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_threads_change_no_bit(scheme: str, kv_dtype: KVDtypeName, checkpoints: Path) -> None:
    model = tiny_model(checkpoints, "qwen3", scheme)
    for script in (SCRIPTS["mixed"], LONG):
        with on_threads(1):
            expected, filled = states(model, script, kv_dtype)
        for threads in (2, 3):
            with on_threads(threads):
                found, cache = states(model, script, kv_dtype)
            assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
            for one, other in zip(cache, filled, strict=True):
                for left, right in zip(one.tensors(), other.tensors(), strict=True):
                    torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_broken_sequence_stays_its_own(scheme: str, checkpoints: Path) -> None:
    """A token whose embedding is not a number spoils the sequence that has it and changes no bit of the others."""
    model, script = tiny_model(checkpoints, "llama, untied, biases", scheme), SCRIPTS["mixed"]
    expected, _ = states(model, script, "auto")
    broken = script.tokens(1)[0]
    with torch.inference_mode():
        dense(model.weights.embedding)[broken] = float("nan")
    others = [index for index in range(len(script.sequences)) if broken not in script.tokens(index)]
    assert others
    found, _ = states(model, script, "auto")
    assert found[1].isnan().all()
    assert all(torch.equal(found[index], expected[index]) for index in others)
