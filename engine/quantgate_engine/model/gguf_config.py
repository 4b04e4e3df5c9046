"""A GGUF file's metadata as Hugging Face's config.json."""

from __future__ import annotations

from typing import Any

from quantgate_engine.errors import ModelError
from quantgate_engine.model.gguf_file import GgufFile
from quantgate_engine.model.gguf_rope import rope_fields

STORED_DTYPE = "float16"

UNSUPPORTED = {
    "expert_count": "a mixture of experts",
    "attention.sliding_window": "a sliding attention window",
}
"""What the decoder does not compute: to leave it out would give wrong answers without a word."""


def model_config(file: GgufFile) -> dict[str, Any]:
    _refuse_unsupported(file)
    architecture = file.architecture
    hidden_size = file.required_int("embedding_length")
    heads = file.required_int("attention.head_count")
    head_dim = file.int_of_architecture("attention.key_length") or hidden_size // heads
    tensors = {tensor.name: tensor for tensor in file.tensors}
    if "token_embd.weight" not in tensors:
        raise ModelError(f"{file.path}: the tensor token_embd.weight is missing; export the model again.")
    return {
        "architectures": [architecture.class_name],
        "model_type": architecture.model_type,
        "vocab_size": int(tensors["token_embd.weight"].shape[1]),
        "hidden_size": hidden_size,
        "intermediate_size": file.required_int("feed_forward_length"),
        "num_hidden_layers": file.required_int("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": file.int_of_architecture("attention.head_count_kv") or heads,
        "head_dim": head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": file.required_int("context_length"),
        "rms_norm_eps": file.float_of_architecture("attention.layer_norm_rms_epsilon", 1e-6),
        "attention_bias": architecture.has_attention_bias,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in tensors,
        **rope_fields(file, head_dim),
        "dtype": STORED_DTYPE,
        "torch_dtype": STORED_DTYPE,
        **special_tokens(file),
    }


def special_tokens(file: GgufFile) -> dict[str, int]:
    """bos_token_id, eos_token_id and pad_token_id, those that the file names."""
    names = {"bos": "bos_token_id", "eos": "eos_token_id", "padding": "pad_token_id"}
    found = {target: file.integer(f"tokenizer.ggml.{source}_token_id") for source, target in names.items()}
    return {target: value for target, value in found.items() if value is not None}


def _refuse_unsupported(file: GgufFile) -> None:
    for key, meaning in UNSUPPORTED.items():
        value = file.of_architecture(key)
        if value not in (None, 0, "none"):
            raise ModelError(
                f"{file.path}, {file.architecture_name}.{key}: the model uses {meaning} ({value}), "
                "which quantgate does not compute; use another model."
            )
