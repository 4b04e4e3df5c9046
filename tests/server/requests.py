"""What tests of the server say to it, and what they expect back."""

from __future__ import annotations

from typing import Any

from tests.server.running import RunningServer

TEXT = "héllo 中, the 🙂 end"
GREEDY: dict[str, Any] = {"model": "tiny", "temperature": 0}


def forced(token_ids: list[int], **extra: Any) -> dict[str, Any]:
    return {"extra_body": {"forced_token_ids": token_ids} | extra}


def ids_of(server: RunningServer, text: str) -> list[int]:
    token_ids: list[int] = server.llm.tokenizer(text)["input_ids"]
    return token_ids


def greedy_tokens(server: RunningServer, prompt: list[int], count: int) -> list[int]:
    """By argmax over teacher-forced logits, which a serving engine computes too."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(server.llm.logits(tokens)[-1].argmax()))
    return tokens[len(prompt) :]
