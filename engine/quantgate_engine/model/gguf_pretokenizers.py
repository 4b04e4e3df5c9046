"""How byte-level BPE tokenizers split text first, by the name that a GGUF file gives (`tokenizer.ggml.pre`).

Source of the names and of the expressions: llama.cpp, `src/llama-vocab.cpp` (`llm_tokenizer_bpe`).
"""

from __future__ import annotations

from collections.abc import Callable

from tokenizers import Regex, pre_tokenizers

_QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _gpt2_bytes() -> pre_tokenizers.PreTokenizer:
    """ByteLevel with the expression of GPT-2 built in."""
    return pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True)


def _single_digits_then_gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2_bytes()])


def _qwen2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_QWEN2_SPLIT), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )


PRETOKENIZERS: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "gpt-2": _gpt2_bytes,
    "smollm": _single_digits_then_gpt2,
    "qwen2": _qwen2,
}
