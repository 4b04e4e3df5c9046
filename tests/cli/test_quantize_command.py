"""`quantgate quantize`: a checkpoint by one command, refusals in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.tiny_model import save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer
from typer.testing import CliRunner

from quantgate.cli.main import app
from quantgate_engine import LLM
from quantgate_engine.errors import ConfigurationError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_tiny_model(tmp_path / "model")
    save_tiny_tokenizer(tmp_path / "model", vocab_size=257)
    return tmp_path / "model"


def quantize(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["quantize", *map(str, arguments)])


def test_a_checkpoint_is_written_and_served_as_it_is_stored(model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(" ".join(f"w{5 + 7 * index % 250}" for index in range(3000)))
    found = quantize(
        model, "--scheme", "int4-g32-gptq", "--out", tmp_path / "out", "--text", text,
        "--sequences", 4, "--tokens", 32, "--json",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert (document["schema"], document["form"]) == ("quantgate.quantize/1", "gptq")
    assert document["recipe"]["rounding"] == "gptq"
    assert 0 < document["mean_output_error"] < 0.5
    llm = LLM(tmp_path / "out", kernel_set="reference")
    assert llm.info.scheme == "stored"
    assert llm.info.provenance["recipe"] == document["recipe"]
    [answer] = llm.generate(["w9 w12 w40"])
    assert answer.token_ids


def test_without_text_a_scheme_rounds_and_says_so(model: Path, tmp_path: Path) -> None:
    found = quantize(model, "--scheme", "int8-w8a8", "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    assert "as compressed-tensors; mean error of weights 0.00" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scheme", "int4"], "Unknown scheme 'int4'; expected one of int4-g32"),
        (["--scheme", "int4-g32", "--format", "awq"], "--format is 'awq'; expected one of gptq, compressed-tensors"),
        (["--scheme", "int8-w8a8", "--format", "gptq"], "cannot say that activations are rounded to INT8"),
        (["--scheme", "int4-g128"], r"Groups of 128 do not divide the rows of down_proj \(192 inputs\)"),
        (["--scheme", "int4-g32", "--text", "none.txt"], "none.txt: this calibration text cannot be read"),
        (["--scheme", "int4-g32", "--text", __file__], "reads no text; leave --text out"),
    ],
)
def test_wrong_settings_are_one_sentence(arguments: list[str], words: str, model: Path, tmp_path: Path) -> None:
    found = quantize(model, "--out", tmp_path / "out", *arguments)
    assert isinstance(found.exception, ConfigurationError)
    with pytest.raises(ConfigurationError, match=words):
        raise found.exception
    assert not (tmp_path / "out").exists()


def test_text_that_a_model_is_judged_by_is_refused(model: Path, tmp_path: Path) -> None:
    sentence = "My budget is 100 euros. Mention my budget of 100 euros each time."
    assert sentence in (Path(__file__).parents[2] / "suites/tasks/multi_turn.yaml").read_text()
    text = tmp_path / "text.txt"
    text.write_text(f"Before it: {sentence} After it.\n" * 40)
    found = quantize(model, "--scheme", "int4-g32-gptq", "--out", tmp_path / "out", "--text", text)
    assert isinstance(found.exception, ConfigurationError)
    assert "with what the model is judged by" in str(found.exception)
