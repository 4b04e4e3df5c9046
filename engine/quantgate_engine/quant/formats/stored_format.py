"""How a model folder says that its weights are quantized, and what it says of each layer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from quantgate_engine.errors import ModelError
from quantgate_engine.model.checkpoint_check import is_there, read_json_object
from quantgate_engine.quant.formats.config.awq_config import AwqConfig
from quantgate_engine.quant.formats.config.bitsandbytes_config import BitsandbytesConfig
from quantgate_engine.quant.formats.config.compressed_tensors_config import CompressedTensorsConfig
from quantgate_engine.quant.formats.config.config_errors import first_fault
from quantgate_engine.quant.formats.config.gptq_config import GptqConfig
from quantgate_engine.quant.formats.storage import Storage
from quantgate_engine.shown import shown

_CONFIGS: dict[str, type[GptqConfig | AwqConfig | CompressedTensorsConfig | BitsandbytesConfig]] = {
    config.format_name: config for config in (GptqConfig, AwqConfig, CompressedTensorsConfig, BitsandbytesConfig)
}
_METHOD = "quant_method"
_SECTIONS = ("quantization_config", "compression_config")
_OWN_FILES = {"quantize_config.json": GptqConfig.format_name, "quant_config.json": AwqConfig.format_name}
"""Files of older writers, each with the method that it need not state."""


class StoredFormat(Protocol):
    """What a checkpoint's configuration says of its layers."""

    @property
    def format_name(self) -> str:
        """gptq, awq, compressed-tensors or bitsandbytes."""
        ...

    def storage(self, layer: str) -> Storage | None:
        """How the linear layer, such as model.layers.3.mlp.down_proj or lm_head, is stored; None: not quantized."""
        ...


def read_stored_format(folder: Path) -> StoredFormat | None:
    """None where nothing says that the weights are quantized. config.json has the word before files of their own.

    Raises ModelError, with the file and the field, for a format or a setting that is not read.
    """
    config = read_json_object(folder / "config.json", "a model folder needs one that names its architecture")
    for section in _SECTIONS:
        stated = config.get(section)
        if stated is not None:
            return stored_format(stated, f"{folder / 'config.json'}, field {section}")
    for name, method in _OWN_FILES.items():
        path = folder / name
        if is_there(path):
            return stored_format(
                {_METHOD: method, **read_json_object(path, "it describes a quantized model")}, str(path)
            )
    return None


def stored_format(stated: object, place: str) -> StoredFormat:
    """place: file and field, for errors."""
    if not isinstance(stated, Mapping):
        raise ModelError(f"{place}: expected an object, found {shown(stated)}.")
    _refuse_sparse(stated, place)
    method = stated.get(_METHOD)
    config = _CONFIGS.get(method) if isinstance(method, str) else None
    if config is None:
        raise ModelError(
            f"{place}, field {_METHOD}: expected {', '.join(_CONFIGS)}, found {shown(method)}; use a 16-bit model, or "
            "one that is quantized in one of these formats."
        )
    try:
        return config.model_validate(stated)
    except ValidationError as error:
        raise ModelError(
            f"{place}, {first_fault(error)}; this form of {method} is not read: use a 16-bit model, or one that is "
            "quantized in another form."
        ) from None


def _refuse_sparse(stated: Mapping[Any, Any], place: str) -> None:
    sparsity = stated.get("sparsity_config")
    if sparsity is not None and not isinstance(sparsity, Mapping):
        raise ModelError(f"{place}, field sparsity_config: expected an object, found {shown(sparsity)}.")
    found = "dense" if sparsity is None else sparsity.get("format", "dense")
    if found != "dense":
        raise ModelError(
            f"{place}, field sparsity_config.format: expected dense, found {shown(found)}; use a model whose weights "
            "are not stored sparsely."
        )
