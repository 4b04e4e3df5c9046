"""Short spellings of request logs for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def chat_row(
    time: Any, *contents: str, answer: str | None = "fine", tokens: int | None = 3, **more: Any
) -> dict[str, Any]:
    """A row as gateways write it: user and assistant in turn, and the response with its usage."""
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": content} for index, content in enumerate(contents)]
    response: dict[str, Any] = {}
    if answer is not None:
        response["choices"] = [{"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}]
    if tokens is not None:
        response["usage"] = {"prompt_tokens": 10, "completion_tokens": tokens}
    request = {"model": "m", "messages": messages, "max_tokens": 100, "temperature": 0.7}
    return {"timestamp": time, "request": request, "response": response} | more


def write_log(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return path
