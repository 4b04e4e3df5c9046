"""Finished layers on disk, so that a run that was broken off goes on where it was.

They lie beside the folder that is to be, under a name that begins with a dot, with a record of what they are the
layers of.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.model.hashing import file_sha256
from quantgate_engine.model.shard_writer import save_tensors

JOB_FILE = "job.json"


class LayerStore:
    """tensors of layer n: `model.layers.n...`, as the checkpoint will hold them."""

    def __init__(self, target: Path, job: dict[str, Any]) -> None:
        """job: model, recipe, text and form, as JSON holds them. Layers of another job are refused.

        Raises ConfigurationError where the place cannot be used.
        """
        self.folder = target.parent / f".{target.name}.quantizing"
        self._refuse_other_job(target, job)
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.folder / f"{JOB_FILE}.partial"
        partial.write_text(json.dumps(job, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        partial.replace(self.folder / JOB_FILE)

    def add(self, index: int, tensors: dict[str, Tensor], told: dict[str, Any]) -> None:
        """told: what provenance will say of the layer. It is finished when its record is there and fits its tensors."""
        path = self._path(index)
        partial = path.with_suffix(".partial")
        save_tensors(tensors, partial)
        record = {"tensors_sha256": file_sha256(partial), "told": told}
        partial.replace(path)
        partial.write_text(json.dumps(record), encoding="utf-8")
        partial.replace(path.with_suffix(".json"))

    def finished(self) -> int:
        """Layers from the first on that are there, every bit as it was written."""
        index = 0
        while self._is_whole(index):
            index += 1
        return index

    def tensors(self, index: int) -> Iterator[tuple[str, Tensor]]:
        with safe_open(self._path(index), framework="pt") as handle:
            names: list[str] = handle.keys()
            for name in names:
                yield name, handle.get_tensor(name)

    def told(self, index: int) -> dict[str, Any]:
        told: dict[str, Any] = self._record(index)["told"]
        return told

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, index: int) -> Path:
        return self.folder / f"layer-{index:05d}.safetensors"

    def _record(self, index: int) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self._path(index).with_suffix(".json").read_text(encoding="utf-8"))
        return record

    def _is_whole(self, index: int) -> bool:
        # A record that is damaged is none: the layer is made again.
        with suppress(OSError, ValueError, TypeError, KeyError):
            return bool(self._record(index)["tensors_sha256"] == file_sha256(self._path(index)))
        return False

    def _refuse_other_job(self, target: Path, job: dict[str, Any]) -> None:
        path = self.folder / JOB_FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except ValueError:
            found = None
        if found != json.loads(json.dumps(job)):
            raise ConfigurationError(
                f"{self.folder}: here lie layers of a run for {target.name} with another model, recipe, text or form; "
                "go on with that one, delete the folder, or choose another --out."
            )
