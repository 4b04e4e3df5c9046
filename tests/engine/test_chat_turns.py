"""Where the turns of an encoded chat start, by the model's own template."""

from __future__ import annotations

import pytest
from tests.engine.byte_tokenizer import make_byte_tokenizer

from quantgate_engine.prompts import encode_prompt, turn_starts

CHAT = [
    {"role": "system", "content": "sys"},
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "four"},
]
FORGETFUL = (
    "{% for m in messages %}{% if m['role'] != 'assistant' or loop.last %}<|user|>{{ m['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
STRICT = (
    "{% for m in messages %}<|user|>{{ m['content'] }}{% endfor %}"
    "{% if messages[-1]['role'] == 'system' %}{{ raise_exception('no user') }}{% endif %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "chat", "starts"),
    [
        (None, CHAT, (4, 12)),
        (None, CHAT[1:], (0, 8)),
        # The template writes an answer unlike once it is not the last message: what stands before is another text.
        (FORGETFUL, CHAT, (4,)),
        # Where the template refuses what stands before a turn, nothing can be cut there.
        (STRICT, CHAT, (12,)),
    ],
    ids=["as written", "without system prompt", "rewritten", "refused"],
)
def test_turns_start_where_the_template_has_written_what_stands_before(template, chat, starts) -> None:
    tokenizer = make_byte_tokenizer() if template is None else make_byte_tokenizer(template)
    assert turn_starts(tokenizer, chat, encode_prompt(tokenizer, chat)) == starts


def test_the_token_that_begins_every_text_stays() -> None:
    tokenizer = make_byte_tokenizer("</s>{% for m in messages %}<|user|>{{ m['content'] }}{% endfor %}")
    tokenizer.bos_token = "</s>"
    chat = CHAT[1:]
    assert turn_starts(tokenizer, chat, encode_prompt(tokenizer, chat)) == (1, 9)
