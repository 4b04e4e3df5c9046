"""A GGUF file's tokenizer and chat template as the files of a Hugging Face folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quantgate_engine.errors import ModelError
from quantgate_engine.model.gguf_file import GgufFile
from quantgate_engine.model.gguf_pretokenizers import PRETOKENIZERS
from quantgate_engine.shown import on_one_line, shown

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def write_tokenizer(file: GgufFile, folder: Path) -> None:
    try:
        tokenizer = _imported(file.path)
    # transformers fails by whatever its code meets in damaged metadata.
    except Exception as error:
        raise ModelError(
            f"{file.path}: no tokenizer can be read from the metadata ({on_one_line(str(error), 200)}); use the "
            "model's Hugging Face folder instead of its GGUF file."
        ) from error
    if file.get("tokenizer.ggml.model") == "gpt2":
        _restore_pretokenizer(file, tokenizer)
    tokenizer.save_pretrained(folder)
    _rewrite_tokenizer_config(file, folder)


def _imported(path: Path) -> PreTrainedTokenizerFast:
    # transformers takes seconds to import, and most calls of the catalog find a model that is converted already.
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, trust_remote_code=False)


def _restore_pretokenizer(file: GgufFile, tokenizer: PreTrainedTokenizerFast) -> None:
    """transformers' import drops the split before byte-level BPE; without it numbers get other token ids."""
    name = file.text("tokenizer.ggml.pre") or file.required("tokenizer.ggml.pre")
    build = PRETOKENIZERS.get(name)
    if build is None:
        raise ModelError(
            f"{file.path}, tokenizer.ggml.pre: how {shown(name)} splits text is not known here (known: "
            f"{', '.join(PRETOKENIZERS)}); use the model's Hugging Face folder instead of its GGUF file."
        )
    tokenizer.backend_tokenizer.pre_tokenizer = build()


def _rewrite_tokenizer_config(file: GgufFile, folder: Path) -> None:
    path = folder / "tokenizer_config.json"
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for key_of_the_import in ("is_local", "local_files_only", "backend"):
        config.pop(key_of_the_import, None)
    # The class name that transformers 5 writes is unknown to transformers 4 and to tools built on it.
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    config["model_max_length"] = file.required_int("context_length")
    config["clean_up_tokenization_spaces"] = False
    config["add_bos_token"] = bool(file.get("tokenizer.ggml.add_bos_token"))
    template = file.text("tokenizer.chat_template")
    if template is not None:
        config["chat_template"] = template
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
