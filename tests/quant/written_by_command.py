"""A tiny model and its checkpoints, as `quantgate quantize` writes them."""

from __future__ import annotations

from pathlib import Path

from tests.engine.tiny_model import save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer
from typer.testing import CliRunner

from quantgate.cli.main import app
from quantgate_engine.quant.methods.named_recipes import NAMED_RECIPES

# Groups of 128 do not divide the rows of the tiny model.
SCHEMES = sorted(name for name in NAMED_RECIPES if "g128" not in name)
INT8_ACTIVATIONS = {name for name in SCHEMES if NAMED_RECIPES[name].int8_activations}


def save_model(folder: Path) -> Path:
    """One layer, so that what happens to a token's row after attention stays in that row."""
    save_tiny_model(folder, num_hidden_layers=1)
    save_tiny_tokenizer(folder, vocab_size=257)
    return folder


def write_checkpoint(model: Path, scheme: str, form: str, target: Path) -> Path:
    words = ["quantize", str(model), "--scheme", scheme, "--format", form, "--out", str(target)]
    if NAMED_RECIPES[scheme].recipe.needs_text:
        text = model / "calibration.txt"
        text.write_text(" ".join(f"w{5 + 7 * index % 250}" for index in range(3000)))
        words += ["--text", str(text), "--sequences", "4", "--tokens", "32"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    return target
