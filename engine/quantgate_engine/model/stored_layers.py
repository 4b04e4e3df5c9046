"""The linear layers of a checkpoint that is quantized already, each read as its configuration says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from quantgate_engine.errors import ModelError
from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.quant.formats.layer_tensors import LayerTensors
from quantgate_engine.quant.formats.storage import Storage, StoredWeight
from quantgate_engine.quant.formats.stored_format import StoredFormat, read_stored_format


class StoredLayers:
    """remarks: what the user should be told of what was read, each once.

    int8_activations: whether any layer that was read is to meet activations in INT8.
    """

    def __init__(self, stored_format: StoredFormat) -> None:
        self._format = stored_format
        self._summaries: Counter[str] = Counter()
        self.remarks: list[str] = []
        self.int8_activations = False

    @classmethod
    def of(cls, folder: Path) -> StoredLayers | None:
        """None where the folder's weights are not quantized. Raises ModelError for a format that is not read."""
        stated = read_stored_format(folder)
        return None if stated is None else cls(stated)

    def storage(self, layer: str) -> Storage | None:
        """None where this layer is stored as floats."""
        return self._format.storage(layer)

    def read(self, checkpoint: Checkpoint, layer: str, storage: Storage, shape: tuple[int, int]) -> StoredWeight:
        """shape: [out, in]. Raises ModelError where tensors are missing, damaged or not what the format calls for."""
        tensors = checkpoint.take_as_stored(layer, storage.tensor_names)
        if not tensors:
            raise ModelError(
                f"{checkpoint.folder}: {layer} is quantized by the word of the configuration ({storage.summary}), but "
                f"none of its tensors is there ({', '.join(storage.tensor_names)}); fetch or export the model again."
            )
        found = storage.read(LayerTensors(str(checkpoint.folder), layer, tensors), shape)
        if found.remark is not None and found.remark not in self.remarks:
            self.remarks.append(found.remark)
        self._summaries[storage.summary] += 1
        self.int8_activations |= storage.int8_activations
        return found.weight

    def provenance(self) -> dict[str, Any]:
        """Of the layers read so far: format, how many are stored how, and remarks; JSON values."""
        commonest = ", ".join(summary for summary, _ in self._summaries.most_common())
        return {
            "format": self._format.format_name,
            "layers": dict(self._summaries),
            "description": commonest,
            "remarks": list(self.remarks),
        }
