"""What control groups leave of the host's memory, read from files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
import torch
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.executor import free_memory
from quantgate_engine.executor.free_memory import free_bytes, group_room
from quantgate_engine.executor.kv_format import KVFormat
from quantgate_engine.model.config import read_decoder_config


def _group(folder: Path, version: int, limit: str, used: int, page_cache: tuple[int, int]) -> None:
    names = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"), 2: ("memory.max", "memory.current", "")}
    limit_file, used_file, prefix = names[version]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / limit_file).write_text(f"{limit}\n")
    (folder / used_file).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(
        f"anon 5\n{prefix}inactive_file {page_cache[0]}\n{prefix}active_file {page_cache[1]}\n"
    )


def _own(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "own"
    file.write_text(text)
    return file


def test_every_group_above_the_process_counts(tmp_path: Path) -> None:
    _group(tmp_path / "a", 2, "1000", 700, (100, 50))
    _group(tmp_path / "a" / "b", 2, "800", 700, (10, 0))
    _group(tmp_path / "a" / "b" / "c", 2, "max", 700, (10, 0))
    assert list(group_room(_own(tmp_path, "0::/a/b/c\n"), tmp_path)) == [110, 450]


def test_version_one_has_files_of_its_own(tmp_path: Path) -> None:
    _group(tmp_path / "memory" / "job", 1, "1000", 1200, (100, 0))
    _group(tmp_path / "memory", 1, "5000", 1200, (100, 0))
    own = _own(tmp_path, "9:name=systemd:/job\n4:memory:/job\n3:cpuset,memory_like:/\n0::/job\n")
    assert list(group_room(own, tmp_path)) == [0, 3900]


def test_a_container_that_hides_the_path_shows_its_own_group_at_the_root(tmp_path: Path) -> None:
    _group(tmp_path, 2, "1000", 400, (0, 0))
    assert list(group_room(_own(tmp_path, "0::/somewhere/else\n"), tmp_path)) == [600]


def test_without_control_groups_nothing_is_said(tmp_path: Path) -> None:
    assert list(group_room(tmp_path / "none", tmp_path)) == []
    assert list(group_room(_own(tmp_path, "0::/\n"), tmp_path)) == []


def test_the_least_of_all_is_what_can_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "_GROUPS", tmp_path)
    monkeypatch.setattr(free_memory, "_OWN_GROUPS", _own(tmp_path, "0::/\n"))
    assert free_bytes(torch.device("cpu")) > 1000
    _group(tmp_path, 2, "1000", 400, (0, 0))
    assert free_bytes(torch.device("cpu")) == 600


def test_a_cache_takes_its_memory_when_it_is_made(tmp_path: Path) -> None:
    save_tiny_model(tmp_path)
    model, kv_format = read_decoder_config(tmp_path), KVFormat(torch.float32)
    # So large that no tensor of it finds a place in memory that was used and freed before.
    wanted = 40 * 2**20 * 2 * model.num_layers
    process = psutil.Process()
    before = process.memory_info().rss
    cache = kv_format.allocate(model, wanted // kv_format.bytes_per_token(model), 1, torch.device("cpu"))
    assert process.memory_info().rss - before > 0.9 * sum(each.nbytes for each in cache.planes)
