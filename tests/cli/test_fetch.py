"""`quantgate fetch`"""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from quantgate.cli import fetch as fetch_module
from quantgate.cli.fetch import fetch
from quantgate_engine.errors import ModelError
from quantgate_engine.model.model_folder import ModelFolder


@pytest.fixture
def invoke(monkeypatch, tmp_path):
    def resolve(name, progress):
        if name == "unknown":
            raise ModelError("unknown: there is no model of this name")
        progress(f"fetching {name} [1/2]")
        return ModelFolder(tmp_path / name, name, "w" * 64, "t" * 64, {"package": "p", "version": "1"})

    monkeypatch.setattr(fetch_module, "resolve_model", resolve)
    app = typer.Typer()
    app.command()(fetch)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_json_is_one_document_and_progress_goes_to_standard_error(invoke, tmp_path):
    result = invoke("a", "b", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["schema"] == "quantgate.fetch/1"
    assert [model["name"] for model in document["models"]] == ["a", "b"]
    assert document["models"][0] == {
        "name": "a",
        "path": str(tmp_path / "a"),
        "weights_sha256": "w" * 64,
        "tokenizer_sha256": "t" * 64,
        "provenance": {"package": "p", "version": "1"},
    }
    assert result.stderr == "fetching a [1/2]\nfetching b [1/2]\n"


def test_plain_output_says_where_the_model_is(invoke, tmp_path):
    result = invoke("a")
    assert result.stdout == f"a: {tmp_path / 'a'} (weights {'w' * 12})\n"


def test_unknown_model_ends_the_command_with_its_error(invoke):
    result = invoke("unknown")
    assert isinstance(result.exception, ModelError)
    assert result.stdout == ""


def test_a_name_is_needed(invoke):
    assert invoke().exit_code == 2


def test_help_has_an_example(invoke):
    assert "Example: quantgate fetch smollm2-135m-instruct" in invoke("--help").stdout
