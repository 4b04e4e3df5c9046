"""The decoder families that a GGUF file may hold, each with the Hugging Face names of the same thing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GgufArchitecture:
    """`rotates_pairs`: llama.cpp stores the query and key rows of this family for rotation of neighbouring pairs,
    Hugging Face for rotation of halves, so that the rows have to be put back in order.
    """

    model_type: str
    class_name: str
    rotates_pairs: bool
    has_attention_bias: bool = False


ARCHITECTURES = {
    "llama": GgufArchitecture("llama", "LlamaForCausalLM", rotates_pairs=True),
    "qwen2": GgufArchitecture("qwen2", "Qwen2ForCausalLM", rotates_pairs=False, has_attention_bias=True),
    "qwen3": GgufArchitecture("qwen3", "Qwen3ForCausalLM", rotates_pairs=False),
}
"""By the file's `general.architecture`; Mistral's files call themselves llama and are the same decoder."""

TOP_LEVEL_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}

LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""`blk.<layer>.<key>.weight` is `model.layers.<layer>.<value>.weight`, and so for biases."""
