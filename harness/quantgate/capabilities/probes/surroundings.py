"""Whether streams end with token counts, whether there is a chat API, and whether the server shows its metrics."""

from __future__ import annotations

from typing import Any

from quantgate.capabilities.answer_shapes import has_answer, usage_of
from quantgate.capabilities.probes.asking import Asking
from quantgate.json_text import parse_json

_FIELD = b"data:"
_MOST_STREAM_BYTES = 1 << 20
"""Of a stream of two tokens: one that is longer pays no heed to max_tokens, and may never end."""
CHAT = "chat"
"""Name of the question under which its failure is kept."""


async def answers_chat(asking: Asking) -> bool:
    return has_answer(await asking.chat(CHAT, "Say hello.", max_tokens=1, temperature=0))


async def counts_streamed_tokens(asking: Asking, *, completions: bool) -> bool:
    """Whether some event of a stream has a usage, as `stream_options.include_usage` asks."""
    fields = {"max_tokens": 2, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    if completions:
        path, body = "/v1/completions", asking.body(prompt="Hello", **fields)
    else:
        messages = [{"role": "user", "content": "Hello"}]
        path, body = "/v1/chat/completions", asking.body(messages=messages, **fields)
    call = asking.calls.post_bytes(path, body, _MOST_STREAM_BYTES)
    stream = await asking.tried("usage in streams", call, is_generation=True)
    return any(usage_of(event, "completion_tokens") is not None for event in _events(stream or b""))


async def shows_metrics(asking: Asking) -> bool:
    """Whether /metrics has at least one sample in Prometheus' text format."""
    text = await asking.tried("/metrics", asking.calls.get_text("/metrics"))
    return any(_is_sample(line) for line in (text or "").splitlines())


def _is_sample(line: str) -> bool:
    name, _, value = line.rpartition(" ")
    if not name or line.startswith(("#", "<", "{")):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


def _events(stream: bytes) -> list[Any]:
    """The JSON documents of a whole event stream; the end mark and anything else is passed over."""
    events = []
    for line in stream.splitlines():
        if line.startswith(_FIELD):
            try:
                events.append(parse_json(line.removeprefix(_FIELD)))
            except ValueError:
                continue
    return events
