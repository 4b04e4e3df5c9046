"""The hash of a calibration text, kept in the cache: to draw the text anew takes a second or two of each load."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from quantgate_engine.model.hashing import text_sha256
from quantgate_engine.quant.calibration.settings import CalibrationSettings


@dataclass(frozen=True, slots=True)
class KnownText:
    """What decides the text that `draw_tokens` draws of Python's own; forbidden_sha256: of all forbidden passages."""

    tokenizer_sha256: str
    calibration: CalibrationSettings
    forbidden_sha256: str | None

    def sha256(self, cache: Path) -> str | None:
        """None where this text was not drawn here yet."""
        with suppress(OSError):
            found = self._path(cache).read_text(encoding="ascii")
            return found if len(found) == 64 else None
        return None

    def remember(self, cache: Path, sha256: str) -> None:
        # A cache that cannot be written costs time at the next load, and no more.
        with suppress(OSError):
            path = self._path(cache)
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(sha256, encoding="ascii")
            partial.replace(path)

    def _path(self, cache: Path) -> Path:
        decisive = {**asdict(self), "python": sys.version, "texts": _python_texts()}
        return cache / "texts" / f"{text_sha256([json.dumps(decisive, sort_keys=True)])}.sha256"


def _python_texts() -> list[tuple[str, int]]:
    """Folders of Python's texts, each with the time at which a file was last put there: updates replace files."""
    library = Path(sysconfig.get_path("stdlib"))
    return [(str(folder), folder.stat().st_mtime_ns) for folder in (library, library / "pydoc_data")]
