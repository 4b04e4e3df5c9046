"""Schemes that name a recipe: a checkpoint is made once, in the cache, and loaded as it is stored."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.tiny_model import save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer
from tests.interrupts import heeding_interrupts

from quantgate_engine import LLM
from quantgate_engine.errors import ConfigurationError, ModelError
from quantgate_engine.executor.compute_thread import on_compute_thread
from quantgate_engine.model.cache import locked
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.preparation import Advance, Preparation, Unseen
from quantgate_engine.prepared_model import prepared_model
from quantgate_engine.quant.calibration.settings import CalibrationSettings
from quantgate_engine.quant.layer_schemes import find_schemes
from quantgate_engine.quant.methods.named_recipes import NAMED_RECIPES

SCHEME = "int4-g32-gptq"
CONFIGURATIONS = ("config.json", "generation_config.json", "quantize_config.json")
CALIBRATION = CalibrationSettings(sequences=3, tokens=24, seed=5)
BRIEF = Preparation(calibration=CALIBRATION)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "cache"))
    save_tiny_model(tmp_path / "model")
    save_tiny_tokenizer(tmp_path / "model", vocab_size=257)
    return tmp_path / "model"


def made(tmp_path: Path) -> list[str]:
    """Everything in the folder of checkpoints but the locks, which stay."""
    found = (tmp_path / "cache" / "quantized").glob("*")
    return sorted(path.name for path in found if path.suffix != ".lock")


class Watched(Unseen):
    """Counts the phases, and keeps what is told of layers."""

    def __init__(self) -> None:
        self.phases = 0
        self.told: list[str] = []

    @contextmanager
    def phase(self, _title: str, _total: float) -> Iterator[Advance]:
        self.phases += 1
        yield self.advance

    def advance(self, _done: float, doing: str) -> None:
        self.told.append(doing)


def test_a_named_recipe_is_a_scheme(model: Path, tmp_path: Path) -> None:
    llm = LLM(model, SCHEME, preparation=BRIEF, kernel_set="reference")
    assert (llm.info.scheme, llm.info.name) == (SCHEME, "model")
    provenance = llm.info.provenance
    assert provenance["scheme"] == SCHEME
    assert provenance["recipe"]["rounding"] == "gptq"
    assert provenance["recipe"]["calibration"]["seed"] == 5
    assert len(provenance["calibration_sha256"]) == 64
    assert provenance["model_weights_sha256"] == resolve_model(model).weights_sha256 != llm.info.weights_sha256
    assert provenance["stored_quantization"]["description"] == "4-bit GPTQ, groups of 32"
    assert llm.generate(["w9 w12 w40"])[0].token_ids
    [folder] = made(tmp_path)
    assert folder.startswith(f"model-{SCHEME}-")


def test_activations_are_rounded_where_the_recipe_says_so(model: Path) -> None:
    llm = LLM(model, "int8-w8a8-smooth", preparation=BRIEF, kernel_set="reference")
    assert llm.info.compute_dtype.endswith("linear layers int8")


def test_a_checkpoint_is_made_once_for_the_same_wishes(model: Path, tmp_path: Path) -> None:
    progress = Watched()
    source = resolve_model(model)
    first = prepared_model(source, SCHEME, Preparation(progress=progress, calibration=CALIBRATION))
    again = prepared_model(source, SCHEME, Preparation(progress=progress, calibration=CALIBRATION))
    assert first == again
    assert progress.phases == 1
    assert [text for text in progress.told if "layer" in text] == [f"{SCHEME}, layer {index}" for index in range(3)]
    others = [
        ("int4-g32-awq", BRIEF),
        (SCHEME, Preparation(calibration=CalibrationSettings(sequences=3, tokens=24, seed=6))),
        (SCHEME, Preparation(lambda: frozenset({"a passage"}), calibration=CALIBRATION)),
    ]
    for scheme, preparation in others:
        assert prepared_model(source, scheme, preparation).path != first.path
    assert len(made(tmp_path)) == 4


def test_the_record_tells_from_what_text_was_kept_apart(model: Path) -> None:
    source = resolve_model(model)
    preparation = Preparation(lambda: frozenset({"a", "b"}), calibration=CALIBRATION)
    assert prepared_model(source, SCHEME, BRIEF).provenance["forbidden_sha256"] is None
    assert len(prepared_model(source, SCHEME, preparation).provenance["forbidden_sha256"]) == 64


def test_other_weights_are_another_checkpoint(model: Path, tmp_path: Path) -> None:
    first = prepared_model(resolve_model(model), SCHEME, BRIEF)
    save_tiny_model(model, seed=1)
    assert prepared_model(resolve_model(model), SCHEME, BRIEF).path != first.path


def test_an_interrupt_leaves_no_checkpoint_and_layers_to_go_on_from(model: Path, tmp_path: Path) -> None:
    class Interrupting(Watched):
        def advance(self, done: float, doing: str) -> None:
            super().advance(done, doing)
            if done == 2:
                raise KeyboardInterrupt

    source = resolve_model(model)
    with pytest.raises(KeyboardInterrupt):
        prepared_model(source, SCHEME, Preparation(progress=Interrupting(), calibration=CALIBRATION))
    [left] = made(tmp_path)
    assert left.startswith(".")
    assert left.endswith(".quantizing")
    progress = Watched()
    folder = prepared_model(source, SCHEME, Preparation(progress=progress, calibration=CALIBRATION))
    assert progress.told[:3] == [
        f"{SCHEME}, passing finished layer 0", f"{SCHEME}, passing finished layer 1", f"{SCHEME}, layer 2",
    ]  # fmt: skip
    assert made(tmp_path) == [folder.path.name]


def test_what_an_interrupted_caller_leaves_behind_ends_with_its_layer(model: Path, tmp_path: Path) -> None:
    """Ctrl-C comes to the caller's thread at once, while layers are computed on another one."""

    class Interrupting(Watched):
        def advance(self, done: float, doing: str) -> None:
            super().advance(done, doing)
            if done == 1:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                time.sleep(0.3)

    progress = Interrupting()
    with heeding_interrupts(), pytest.raises(KeyboardInterrupt):
        prepared_model(resolve_model(model), SCHEME, Preparation(progress=progress, calibration=CALIBRATION))
    assert progress.told[-1] == f"{SCHEME}, layer 1"
    on_compute_thread(lambda: None)
    assert progress.told[-1] == f"{SCHEME}, layer 1"
    [left] = made(tmp_path)
    assert left.endswith(".quantizing")


def test_who_waits_for_another_process_can_be_interrupted(model: Path) -> None:
    class Waiting(Watched):
        def advance(self, done: float, doing: str) -> None:
            super().advance(done, doing)
            raise KeyboardInterrupt

    source = resolve_model(model)
    folder = prepared_model(source, SCHEME, BRIEF).path
    shutil.rmtree(folder)
    progress = Waiting()
    with locked(folder), pytest.raises(KeyboardInterrupt):
        prepared_model(source, SCHEME, Preparation(progress=progress, calibration=CALIBRATION))
    assert progress.told == [f"{SCHEME}, waiting for another process that does the same"]


def test_what_is_there_is_taken_without_drawing_text(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = resolve_model(model)
    first = prepared_model(source, SCHEME, BRIEF)

    def drawn(*_arguments: object) -> None:
        raise AssertionError("drawn again")

    monkeypatch.setattr("quantgate_engine.prepared_model._text", drawn)
    assert prepared_model(source, SCHEME, BRIEF) == first
    other = Preparation(lambda: frozenset({"a passage"}), calibration=CALIBRATION)
    with pytest.raises(AssertionError, match="drawn again"):
        prepared_model(source, SCHEME, other)


def test_processes_that_come_at_once_share_one_checkpoint(model: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        found = pool.map(_prepare, [model] * 2)
    assert found[0] == found[1]
    assert made(tmp_path) == [found[0]]


def _prepare(model: Path) -> str:
    return prepared_model(resolve_model(model), SCHEME, BRIEF).path.name


def test_a_checkpoint_that_was_damaged_is_told(model: Path) -> None:
    folder = prepared_model(resolve_model(model), SCHEME, BRIEF)
    weights = folder.path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8] + bytes(8))
    with pytest.raises(ModelError, match=r"the file is not the one that was stored .* and quantize the model again"):
        LLM(model, SCHEME, preparation=BRIEF)


def test_a_configuration_that_was_changed_is_told(model: Path) -> None:
    config = prepared_model(resolve_model(model), SCHEME, BRIEF).path / "config.json"
    config.write_text(config.read_text().replace('"rms_norm_eps": ', '"rms_norm_eps": 1'))
    with pytest.raises(ModelError, match=r"config.json: the file is not the one that was stored"):
        LLM(model, SCHEME, preparation=BRIEF)


def test_records_from_before_configurations_were_recorded_are_read(model: Path) -> None:
    record_path = prepared_model(resolve_model(model), SCHEME, BRIEF).path / "quantgate.json"
    record = json.loads(record_path.read_text())
    assert "config.json" in record["files"]
    record["files"] = {name: stamp for name, stamp in record["files"].items() if name not in CONFIGURATIONS}
    record_path.write_text(json.dumps(record))
    assert prepared_model(resolve_model(model), SCHEME, BRIEF).provenance["scheme"] == SCHEME


def test_what_is_no_whole_checkpoint_is_told_before_layers_are_made(model: Path) -> None:
    folder = prepared_model(resolve_model(model), SCHEME, BRIEF).path
    (folder / "quantgate.json").unlink()
    watched = Watched()
    with pytest.raises(
        ConfigurationError, match=r"its record \(quantgate.json\) is missing; remove it, and it is made"
    ):
        LLM(model, SCHEME, preparation=replace(BRIEF, progress=watched))
    assert watched.told == []


def test_a_quantized_checkpoint_is_not_quantized_again(model: Path) -> None:
    folder = prepared_model(resolve_model(model), SCHEME, BRIEF)
    with pytest.raises(ConfigurationError, match="quantized already; quantize the model that it was made from"):
        LLM(folder.path, SCHEME, preparation=BRIEF)


def test_rows_that_do_not_divide_are_told_before_anything_is_computed(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Groups of 128 do not divide the rows of down_proj"):
        LLM(model, "int4-g128-gptq", preparation=BRIEF)
    assert made(tmp_path) == []


@pytest.mark.parametrize("choice", ["int4-g64-gptq+lm_head=int8-w8a16", "int4-g64+*.down_proj=int4-g64-awq"])
def test_recipes_have_no_place_in_maps(choice: str) -> None:
    with pytest.raises(ConfigurationError, match="quantizes a whole model before it is loaded and has no place in a"):
        find_schemes(choice)


def test_every_recipe_is_a_scheme() -> None:
    for name in NAMED_RECIPES:
        assert find_schemes(name).name == name
