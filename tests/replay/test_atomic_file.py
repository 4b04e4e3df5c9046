"""What is written by renaming: only files are replaced, links stay, and every refusal is one sentence."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quantgate.store.atomic_file import require_replaceable, write_text_atomically
from quantgate.store.disk_reserve import DiskReserve
from quantgate_engine.errors import ConfigurationError, RunError


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def _link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


@pytest.mark.parametrize("make", [_pipe, _socket, _link_to_a_pipe])
def test_what_is_no_file_is_refused_and_stays(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "there"
    make(path)
    before = path.lstat()
    with pytest.raises(ConfigurationError, match=r"there is a device, a pipe or a socket; name a file to write"):
        write_text_atomically(path, "text")
    after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_file_that_the_program_prints_to_is_not_replaced(stream: str, tmp_path: Path) -> None:
    printed = tmp_path / "printed.txt"
    script = (
        "import sys; from pathlib import Path; from quantgate.store.atomic_file import write_text_atomically\n"
        "from quantgate_engine.errors import ConfigurationError\n"
        f"print('before', file=sys.{stream}, flush=True)\n"
        f"try: write_text_atomically(Path('/dev/{stream}'), 'lost')\n"
        f"except ConfigurationError as error: print(error, file=sys.{stream})\n"
    )
    with printed.open("wb") as file:
        streams = {"stdout": None, "stderr": None, stream: file}
        subprocess.run([sys.executable, "-c", script], check=True, stdout=streams["stdout"], stderr=streams["stderr"])
    sentence = f"/dev/{stream} is the file that this program prints to; name another one."
    assert printed.read_text().splitlines() == ["before", sentence]


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    target, link = tmp_path / "kept" / "target", tmp_path / "link"
    link.symlink_to(Path("kept") / "target")
    for text in ("made", "replaced"):
        write_text_atomically(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["target"]


def test_links_in_a_circle_are_told(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(RunError, match=r"one: the symbolic links there lead round in a circle; choose another path\.$"):
        write_text_atomically(tmp_path / "one", "text")
    assert (tmp_path / "one").is_symlink()


def test_a_folder_is_no_name_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is a folder where a file is to be written"):
        require_replaceable(tmp_path)


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only file system, which refuses to make files and, whether they are there or not, to remove them."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("open", "unlink", "write_text"):
        monkeypatch.setattr(Path, name, refuse)


@pytest.mark.usefixtures("read_only")
def test_a_read_only_file_system_is_one_sentence(tmp_path: Path) -> None:
    sentence = r"^Cannot write {}: the file system is read-only; choose another folder\.$"
    with pytest.raises(RunError, match=sentence.format(r".*x\.html")):
        write_text_atomically(tmp_path / "x.html", "text")
    with pytest.raises(RunError, match=sentence.format(tmp_path)):
        DiskReserve(tmp_path)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"there is no such folder; make it, or choose another one\.$"):
        write_text_atomically(tmp_path / "missing" / "file", "text")
