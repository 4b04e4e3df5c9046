"""A byte-level tokenizer for tiny models: token N is byte N, and a few merged ones that cut characters oddly."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from quantgate_engine.text.token_pieces import byte_of_symbol

END, USER, ASSISTANT = 256, 257, 258
VOCABULARY = 264
"""Two more than the tokenizer has entries, as models round up."""

CHAT_TEMPLATE = (
    "{% if refused is defined %}{{ raise_exception('no such mode') }}{% endif %}"
    "{% for m in messages %}<|user|>{{ prefix|default('') }}{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

SYMBOL_OF_BYTE = {byte: symbol for symbol, byte in byte_of_symbol().items()}


def _symbols(content: bytes) -> str:
    return "".join(SYMBOL_OF_BYTE[byte] for byte in content)


def make_byte_tokenizer(chat_template: str | None = CHAT_TEMPLATE) -> PreTrainedTokenizerFast:
    vocabulary = {SYMBOL_OF_BYTE[byte]: byte for byte in range(256)}
    # "th", then "the"; and the last two bytes of one character, which leave its first byte alone.
    pairs = [(b"t", b"h"), (b"th", b"e"), (b"\xb8", b"\xad")]
    vocabulary |= {"</s>": END, "<|user|>": USER, "<|assistant|>": ASSISTANT}
    vocabulary |= {_symbols(left + right): 259 + index for index, (left, right) in enumerate(pairs)}
    backend = Tokenizer(BPE(vocab=vocabulary, merges=[(_symbols(left), _symbols(right)) for left, right in pairs]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["</s>", "<|user|>", "<|assistant|>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>", clean_up_tokenization_spaces=False)
    tokenizer.chat_template = chat_template
    return tokenizer


def save_byte_tokenizer(folder: Path) -> None:
    make_byte_tokenizer().save_pretrained(folder)
