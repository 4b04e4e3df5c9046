"""Why an answer ended, in our words: `stop` (its own end) or `length` (the limit)."""

from __future__ import annotations

FINISH_REASONS: dict[str, str] = {
    "stop": "stop",
    "length": "length",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
}
"""OpenAI's words, and those of TGI (`eos_token`, `stop_sequence`); others are kept as the server says them."""

ABORTS = frozenset({"abort", "error"})
"""vLLM and SGLang end a stream with these when they gave the request up."""
