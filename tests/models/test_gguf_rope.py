"""Scaled rotary embeddings of GGUF files: what becomes of llama.cpp's keys, and that the answers are right."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ModelError
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.gguf_import import import_gguf
from quantgate_engine.model.model_folder import ModelFolder

THETA, HEAD_DIM, CONTEXT, TRAINED = 50_000.0, 16, 128, 32
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": TRAINED}
SCALING = "rope__scaling__"


def llama3_divisors() -> list[float]:
    """As llama.cpp's convert_hf_to_gguf.py writes them (`LlamaModel.generate_extra_tensors`)."""
    divisors = []
    for exponent in range(0, HEAD_DIM, 2):
        wavelength = 2 * math.pi * THETA ** (exponent / HEAD_DIM)
        if wavelength < TRAINED / 4.0:
            divisors.append(1.0)
        elif wavelength > TRAINED / 1.0:
            divisors.append(8.0)
        else:
            smooth = (TRAINED / wavelength - 1.0) / (4.0 - 1.0)
            divisors.append(1 / ((1 - smooth) / 8.0 + smooth))
    return divisors


def converted(make_gguf: Callable[..., Path], folder: Path, **settings: Any) -> dict[str, Any]:
    """The config.json that comes of it."""
    import_gguf(make_gguf(**settings), folder)
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "llama3's divisors": ({"rope_freqs": llama3_divisors()}, {"rope_type": "llama3", **LLAMA3}),
    "linear": ({f"{SCALING}type": "linear", f"{SCALING}factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),
    "linear, old key": ({"rope__scale_linear": 4.0}, {"rope_type": "linear", "factor": 4.0}),
    "yarn": (
        {f"{SCALING}type": "yarn", f"{SCALING}factor": 2.5, f"{SCALING}original_context_length": TRAINED},
        {"rope_type": "yarn", "factor": 2.5, "original_max_position_embeddings": TRAINED},
    ),
    "yarn, other ends": (
        {
            f"{SCALING}type": "yarn", f"{SCALING}factor": 2.5, f"{SCALING}original_context_length": TRAINED,
            f"{SCALING}yarn_beta_fast": 8.0, f"{SCALING}yarn_beta_slow": 2.0,
        },
        {
            "rope_type": "yarn", "factor": 2.5, "original_max_position_embeddings": TRAINED,
            "beta_fast": 8.0, "beta_slow": 2.0,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_scaled_gguf_model_answers_as_transformers_does_with_the_original_settings(
    case: str, make_gguf: Callable[..., Path], tmp_path: Path
) -> None:
    settings, rope = CASES[case]
    converted(make_gguf, tmp_path, **settings)
    folder = ModelFolder(path=tmp_path, name="tiny", weights_sha256="0" * 64, tokenizer_sha256="0" * 64)
    tokens = torch.randint(3, 250, (100,), generator=torch.Generator().manual_seed(1)).tolist()
    found = TorchExecutor.load(folder, "fp32", EngineConfig()).logits(tokens, 30)
    logits = {}
    for name, parameters in (("scaled", rope), ("unscaled", {"rope_type": "default"})):
        config = AutoConfig.from_pretrained(tmp_path)
        config.rope_parameters = {**parameters, "rope_theta": THETA}
        model = AutoModelForCausalLM.from_pretrained(tmp_path, config=config, dtype=torch.float32).eval()
        with torch.no_grad():
            logits[name] = model(torch.tensor([tokens])).logits[0]
    largest = float(logits["scaled"].abs().max())
    assert float((logits["unscaled"] - logits["scaled"]).abs().max()) > 0.01 * largest
    assert float((found - logits["scaled"]).abs().max()) < 1e-4 * largest


def test_transformers_reads_the_converted_folder_alike(make_gguf: Callable[..., Path], tmp_path: Path) -> None:
    config = converted(make_gguf, tmp_path, rope_freqs=llama3_divisors())
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"] == THETA
    read = AutoConfig.from_pretrained(tmp_path)
    assert read.rope_parameters["rope_type"] == "longrope"
    assert read.rope_parameters["rope_theta"] == THETA
    assert read.rope_parameters["short_factor"] == pytest.approx(llama3_divisors(), rel=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {f"{SCALING}type": "none", f"{SCALING}factor": 4.0},
        {f"{SCALING}type": "yarn", f"{SCALING}factor": 1.0},
        {f"{SCALING}factor": 0.0},
        {f"{SCALING}attn_factor": 1.0},
    ],
    ids=["nothing", "switched off", "a factor of 1", "a factor of 0", "a neutral key"],
)
def test_what_scales_nothing_is_no_scaling(
    settings: dict[str, Any], make_gguf: Callable[..., Path], tmp_path: Path
) -> None:
    config = converted(make_gguf, tmp_path, **settings)
    assert config["rope_parameters"] == {"rope_type": "default", "rope_theta": THETA}
    assert "rope_scaling" not in config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({f"{SCALING}type": "longrope"}, r"llama\.rope\.scaling\.type: the model uses a rotary embedding \(longrope\)"),
        ({f"{SCALING}attn_factor": 1.5}, r"llama\.rope\.scaling\.attn_factor: .*\(1\.5\)"),
        ({"rope_freqs": [1.0] * 8, f"{SCALING}factor": 2.0}, r"rope\.scaling\.factor: .*beside the tensor rope_freqs"),
        ({"rope_freqs": [1.0] * 7}, "rope_freqs.weight should hold 8 positive numbers"),
        ({"rope_freqs": [1.0] * 7 + [0.0]}, "rope_freqs.weight should hold 8 positive numbers"),
    ],
)
def test_a_scaling_that_is_not_computed_is_refused(
    settings: dict[str, Any], message: str, make_gguf: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=message):
        converted(make_gguf, tmp_path, **settings)
