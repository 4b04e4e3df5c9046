"""Small random models of the decoder family, saved as Hugging Face folders by transformers itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from quantgate_engine.model.model_folder import ModelFolder

TINY_SHAPE: dict[str, Any] = {
    "vocab_size": 257,
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
    "tie_word_embeddings": True,
    "eos_token_id": 2,
    "bos_token_id": 1,
}


def save_tiny_model(folder: Path, seed: int = 0, model_type: str = "llama", **changes: Any) -> tuple[ModelFolder, Any]:
    """-> (the folder as the engine takes it, the transformers model that it was saved from, float32, eval mode).

    Weights are larger than a fresh model's, so that attention is far from uniform and wrong positions show.
    """
    shape = {**TINY_SHAPE, **changes}
    config = AutoConfig.for_model(model_type, **shape)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                noise = torch.randn_like(parameter)
                if "norm" in name:
                    parameter.copy_(1 + 0.2 * noise)
                else:
                    parameter.copy_(noise if parameter.dim() == 1 else noise * 1.5 / parameter.shape[1] ** 0.5)
    model.save_pretrained(folder)
    name = f"tiny-{model_type}"
    return ModelFolder(path=folder, name=name, weights_sha256="0" * 64, tokenizer_sha256="0" * 64), model
