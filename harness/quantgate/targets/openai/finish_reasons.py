"""Why an answer ended, in our words: `stop` (its own end) or `length` (the limit)."""

from __future__ import annotations

from quantgate.targets.openai.errors import one_line

_LONGEST_WORD = 40
"""Characters. A reason is a word: text beyond that would spread over tables and files."""

FINISH_REASONS: dict[str, str] = {
    "stop": "stop",
    "length": "length",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
}
"""OpenAI's words, and those of TGI (`eos_token`, `stop_sequence`); others are kept as the server says them."""

ENDS_BY_TOKEN = frozenset({"stop", "eos_token", "stop_sequence"})
"""After these the server's total may hold an end token that no text shows."""

ABORTS = frozenset(
    {"abort", "error", "failed", "cancelled", "canceled", "timeout", "not_finished", "insufficient_system_resource"}
)
"""Servers end a stream with these when they gave the request up: vLLM and SGLang with the first two, TensorRT-LLM with
`cancelled`, `timeout` and `not_finished`, DeepSeek with the last."""


def finish_word(said: str | None) -> str | None:
    """The server's reason in our words; one that we do not know as it says it, printable and short. None: no reason."""
    if said is None:
        return None
    word = one_line(said)[:_LONGEST_WORD]
    return FINISH_REASONS.get(word.lower(), word) or None
