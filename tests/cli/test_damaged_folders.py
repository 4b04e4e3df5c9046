"""Folders of models that are damaged or lie: exit code 2 and one sentence that names file, field or tensor."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.quant.written_by_command import save_model, write_checkpoint

from quantgate.cli.main import run_command

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
NORM = "model.norm.weight"
BENCH = ("--schemes", "stored", "--prompt-lengths", "8", "--batch-sizes", "1", "--context", "8", "--repeats", "1")
Damage = Callable[[Path], Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_checkpoint(save_model(tmp_path / "source"), "int4-g32", "gptq", tmp_path / "model")
    # A folder of somebody else's: without hashes of what it once was.
    (tmp_path / "model" / "quantgate.json").unlink()
    return tmp_path / "model"


def sentence(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    before = sorted(folder.iterdir())
    monkeypatch.setattr("sys.argv", ["quantgate", "bench", "--model", str(folder), *BENCH])
    assert run_command() == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("quantgate: ")]
    assert len(told) == 1
    assert told[0].endswith(".")
    assert len(told[0].replace(str(folder), "")) < 450
    assert sorted(folder.iterdir()) == before
    return told[0].replace(str(folder), "M")


def cut_to(size: int) -> Damage:
    return lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:size])


def as_folder(name: str) -> Damage:
    return lambda folder: ((folder / name).unlink(missing_ok=True), (folder / name).mkdir())


def as_link(name: str, target: str) -> Damage:
    return lambda folder: ((folder / name).unlink(missing_ok=True), (folder / name).symlink_to(target))


def as_pipe(name: str) -> Damage:
    return lambda folder: ((folder / name).unlink(missing_ok=True), os.mkfifo(folder / name))


def text(name: str, content: str) -> Damage:
    return lambda folder: (folder / name).write_text(content)


def field(**changes: Any) -> Damage:
    def change(folder: Path) -> None:
        stated = json.loads((folder / CONFIG).read_text())
        (folder / CONFIG).write_text(json.dumps({**stated, **changes}))

    return change


def tensor(name: str, value: torch.Tensor) -> Damage:
    return lambda folder: save_file(load_file(folder / WEIGHTS) | {name: value}, folder / WEIGHTS)


def declared(name: str, value: torch.Tensor, **header: Any) -> Damage:
    """The tensor, and what the header says of it."""

    def change(folder: Path) -> None:
        tensor(name, value)(folder)
        content = (folder / WEIGHTS).read_bytes()
        (size,) = struct.unpack("<Q", content[:8])
        stated = json.loads(content[8 : 8 + size])
        stated[name] |= header
        words = json.dumps(stated).encode()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(words)) + words + content[8 + size :])

    return change


def shards(change: Callable[[dict[str, str]], Any], *, both: str | None = None, gone: str | None = None) -> Damage:
    """Two of them. change: of the index; both: a tensor that is in both; gone: a shard that is missing."""

    def split(folder: Path) -> None:
        tensors = load_file(folder / WEIGHTS)
        (folder / WEIGHTS).unlink()
        names = sorted(tensors)
        parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
        for file_name, own in parts.items():
            kept = {name for name in names if name in own or name == both}
            save_file({name: tensors[name] for name in kept}, folder / file_name)
        weight_map = {name: file_name for file_name, own in parts.items() for name in own}
        change(weight_map)
        (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))
        if gone:
            (folder / gone).unlink()

    return split


READABLE = "this is not a readable safetensors file"
NO_FILE = "a file was expected, and this is a folder or a link to no file"
DAMAGES: dict[str, tuple[Damage, str]] = {
    **{f"cut to {size}": (cut_to(size), f"M/{WEIGHTS}: {READABLE}") for size in (0, 7, 8, 200, 5000, 60000)},
    "a page of a web server": (text(WEIGHTS, "<!DOCTYPE html>" * 99), f"M/{WEIGHTS}: {READABLE}"),
    "weights in a folder": (as_folder(WEIGHTS), f"M/{WEIGHTS}: {NO_FILE}"),
    "weights linked to nowhere": (as_link(WEIGHTS, "nowhere"), f"M/{WEIGHTS}: {NO_FILE}"),
    "weights linked to themselves": (as_link(WEIGHTS, WEIGHTS), f"M/{WEIGHTS}: {NO_FILE}"),
    "weights through a pipe": (as_pipe(WEIGHTS), f"M/{WEIGHTS}: {NO_FILE}"),
    "config in a folder": (as_folder(CONFIG), f"M/{CONFIG}: {NO_FILE}"),
    "config through a pipe": (as_pipe(CONFIG), f"M/{CONFIG}: {NO_FILE}"),
    "config too deep": (text(CONFIG, '{"a":' * 100_000), f"M/{CONFIG}: objects or lists stand in each other too deep"),
    "config of many digits": (text(CONFIG, '{"a":' + "9" * 5000 + "}"), f"M/{CONFIG}: this is not JSON"),
    "generation config in a folder": (as_folder("generation_config.json"), f"M/generation_config.json: {NO_FILE}"),
    "own config in a folder": (
        lambda folder: (field(quantization_config=None)(folder), as_folder("quantize_config.json")(folder)),
        f"M/quantize_config.json: {NO_FILE}",
    ),
    "a tokenizer that is a list": (text("tokenizer.json", "[]"), "M: no tokenizer can be read from it"),
    "tokenizer settings that are a list": (text("tokenizer_config.json", "[]"), "M: no tokenizer can be read from it"),
    "more layers than can be counted": (
        field(num_hidden_layers=10**20),
        "field num_hidden_layers: expected an integer of at most 10000, found 100000000000000000000",
    ),
    "more layers than can be listed": (field(num_hidden_layers=10**9), "field num_hidden_layers: expected an integer"),
    "a row that is too long": (field(hidden_size=10**12), "field hidden_size: expected an integer of at most 2147483"),
    "a long word for a number": (
        field(hidden_size="x\n" * 5000),
        r"hidden_size: expected a positive integer, found 'x\n",
    ),
    "a field that only transformers refuses": (field(rms_norm_eps=None), "no tokenizer can be read from it"),
    "a sparsity that is a number": (
        field(quantization_config={"quant_method": "gptq", "bits": 4, "sparsity_config": 5}),
        "field sparsity_config: expected an object, found 5",
    ),
    "a key of two lines": (
        field(quantization_config={"quant_method": "gptq", "bits": 4, "dynamic": {"+:a\nb": 5}}),
        r"field dynamic.+:a\nb: expected an object",
    ),
    "a tensor in two shards": (shards(lambda _map: None, both=NORM), f"tensor {NORM} is in a.safetensors and in b."),
    "a shard that is gone": (shards(lambda _map: None, gone="b.safetensors"), "M/b.safetensors: the file is missing"),
    "a tensor that no shard has": (
        shards(lambda index: index.update({"x.g_idx": "b.safetensors"})),
        "M/b.safetensors: the index says that tensor x.g_idx is there, and no file has it",
    ),
    "a shard that the index forgot": (
        shards(lambda index: index.update(dict.fromkeys(index, "a.safetensors"))),
        "M/a.safetensors: the index says that tensor ",
    ),
    **{
        f"a shard named {name!r:.20}": (
            shards(lambda index, name=name: index.update({NORM: name})),
            "is not the name of",
        )
        for name in (
            3,
            None,
            {"x": 1},
            "../b.safetensors",
            "b\n.safetensors",
            "b\0.safetensors",
            f"{'b' * 999}.safetensors",
        )
    },
    "a tensor of a name in two lines": (tensor("a\nb", torch.ones(3)), r"(first: 'a\nb')"),
    "a tensor of a long name": (tensor("a" * 9999, torch.ones(3)), "(first: aaaa"),
    "a norm of 8 bits": (
        tensor(NORM, torch.ones(128).to(torch.float8_e5m2)),
        f"tensor {NORM} is stored as torch.float8",
    ),
    "a norm of 6 bits": (
        declared(NORM, torch.ones(96, dtype=torch.uint8), dtype="F6_E2M3", shape=[128]),
        f"tensor {NORM} cannot be read (Dtype not understood: F6_E2M3)",
    ),
    "a bias of 4 bits": (
        declared("x.bias", torch.zeros(64, dtype=torch.uint8), dtype="F4", shape=[128]),
        "no place for (first: x.bias)",
    ),
    "a shape beyond all memory": (declared(NORM, torch.ones(128), shape=[2**40, 2**40]), f"M/{WEIGHTS}: {READABLE}"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_told_in_one_sentence(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, words = DAMAGES[name]
    damage(folder)
    assert words in sentence(folder, monkeypatch, capsys)


@pytest.mark.parametrize("damage", [lambda _folder: None, shards(lambda _map: None), as_link("README.md", "nowhere")])
def test_a_folder_that_is_whole_is_measured(damage: Damage, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(folder)
    monkeypatch.setattr("sys.argv", ["quantgate", "bench", "--model", str(folder), *BENCH])
    assert run_command() == 0
