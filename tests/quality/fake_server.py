"""A server in memory whose answers follow from a table of logits, and which gives as much or as little as it is told.

One token a character (`CharacterTokenizer`); the last token of the alphabet ends an answer.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

import torch
from safetensors.torch import save
from tests.quality.table_model import ALPHABET, CharacterTokenizer, random_table

from quantgate.quality.openai_model import OpenAIModel
from quantgate.targets.openai.errors import EndpointError
from quantgate.targets.openai.settings import EndpointSettings

URL = "http://fake:8000"
SETTINGS = EndpointSettings(url=URL)
END = len(ALPHABET) - 1
OWN_FACTS = {"max_context_tokens": 512, "weights_sha256": "w", "tokenizer_sha256": "t"}
READABLE = [character if character != "\n" else "" for character in ALPHABET]


class LenientTokenizer(CharacterTokenizer):
    """Reads any text: characters outside the alphabet become "?"; its special token is a leading "\\n"."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        known = "".join(character if character in ALPHABET else "?" for character in text)
        return [END] * add_special_tokens + super().encode(known, add_special_tokens=False)


@dataclass
class FakeServer:
    """Numbers of alternatives: the most that the server accepts; None: it ignores the field. `refuses` maps a path to
    the error that it answers with, `cap` is what it lists at most without saying so.
    """

    table: torch.Tensor = field(default_factory=lambda: random_table(1))
    answers: Mapping[str, str] = field(default_factory=dict)
    token_ids: bool = True
    prompt_logprobs: int | None = None
    echo: int | None = None
    logprobs: int | None = None
    shape: Literal["older", "content", "texts"] = "older"
    cap: int = 10_000
    whole: bool = False
    forced: bool = False
    returns_ids: bool = False
    honours_eos: bool = True
    honours_seed: bool = True
    usage: bool = True
    completions: bool = True
    chat: bool = True
    metrics: bool = False
    tokenize: Literal["prompt", "content", None] = None
    models: Sequence[Mapping[str, Any]] = ({"id": "fake"},)
    props: Mapping[str, Any] | None = None
    refuse: Callable[[str, Any], EndpointError | None] = lambda path, body: None
    requests: list[tuple[str, Any]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    draws: int = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def get_json(self, path: str) -> Any:
        return json.loads(await self.get_text(path))

    async def get_text(self, path: str) -> str:
        self._take(path, None)
        if path == "/v1/models":
            return json.dumps({"data": self.models})
        if path == "/props" and self.props is not None:
            return json.dumps(self.props)
        if path == "/metrics" and self.metrics:
            return "# HELP a b\nrequests_total 3\n"
        raise status(404)

    async def post_json(self, path: str, body: Any) -> Any:
        return json.loads(await self.post_bytes(path, body))

    async def post_bytes(self, path: str, body: Any, most_bytes: int = 0) -> bytes:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await _one_turn()
            self._take(path, body)
            return self._answer(path, body)
        finally:
            self.in_flight -= 1

    def _take(self, path: str, body: Any) -> None:
        self.requests.append((path, body))
        error = self.refuse(path, body)
        if error is not None:
            raise error

    def _answer(self, path: str, body: Any) -> bytes:
        if path == "/v1/completions" and self.completions:
            return self._completion(body)
        if path == "/v1/chat/completions" and self.chat:
            text = " ".join(message["content"] for message in body["messages"])
            return self._generated(body, text, [], lambda answer: {"message": {"role": "assistant", "content": answer}})
        if path == "/tokenize" and self.tokenize is not None:
            text = body.get(self.tokenize)
            return json.dumps({"tokens": self._ids(text) if text else []}).encode()
        if path == "/quantgate/continuation_logits" and self.whole:
            prompt, options = body["prompt_token_ids"], body["continuations"]
            rows = {str(i): self.table[[prompt[-1], *option[:-1]]] for i, option in enumerate(options)}
            return save(rows)
        raise status(404)

    def _ids(self, text: str) -> list[int]:
        return LenientTokenizer().encode(text, add_special_tokens=False)

    def _completion(self, body: Any) -> bytes:
        prompt = body["prompt"]
        if not isinstance(prompt, str) and not self.token_ids:
            raise status(400)
        ids = self._ids(prompt) if isinstance(prompt, str) else list(prompt)
        text = LenientTokenizer().decode(ids)
        return self._generated(body, text, ids, lambda answer: {"text": answer})

    def _generated(self, body: Any, text: str, ids: list[int], shown: Callable[[str], dict[str, Any]]) -> bytes:
        answer = [*self._ids(self._text_for(body, text)), END]
        if body.get("ignore_eos") and self.honours_eos:
            answer = answer + [0] * body["max_tokens"]
        if self.forced and "forced_token_ids" in body:
            answer = list(body["forced_token_ids"])
        stopped = len(answer) <= body["max_tokens"]
        answer = answer[: body["max_tokens"]]
        kept = [token for token in answer if token != END] if stopped else answer
        choice = shown("".join(READABLE[token] for token in kept)) | {"finish_reason": "stop" if stopped else "length"}
        if ids:
            choice |= self._listings(body, ids)
        if self.returns_ids and body.get("return_token_ids"):
            choice["token_ids"] = answer
        document: dict[str, Any] = {"choices": [choice]}
        if self.usage:
            document["usage"] = {"prompt_tokens": len(ids or self._ids(text)), "completion_tokens": len(answer)}
        if not body.get("stream"):
            return json.dumps(document).encode()
        return f"data: {json.dumps(document)}\n\ndata: [DONE]\n\n".encode()

    def _text_for(self, body: Any, prompt: str) -> str:
        if body.get("temperature") == 1.0:
            self.draws += 1
            return f"drawn {body.get('seed') if self.honours_seed else self.draws} and so on"
        return next((answer for part, answer in self.answers.items() if part in prompt), "")

    def _listings(self, body: Any, ids: list[int]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.prompt_logprobs is not None and "prompt_logprobs" in body:
            k = _within(body["prompt_logprobs"], self.prompt_logprobs)
            found["prompt_logprobs"] = [None, *(self._by_id(a, b, k) for a, b in itertools.pairwise(ids))]
        if "logprobs" in body:
            if body.get("echo"):
                if self.echo is None:
                    raise status(400)
                k = _within(body["logprobs"], self.echo)
                found["logprobs"] = self._listed([None, *ids[:-1], ids[-1]], [*ids, 0], k)
            elif self.logprobs is not None:
                found["logprobs"] = self._listed([ids[-1]], [0], _within(body["logprobs"], self.logprobs))
        return found

    def _by_id(self, before: int, token: int, k: int) -> dict[str, Any]:
        row = torch.log_softmax(self.table[before].double(), dim=-1).tolist()
        likeliest = sorted(range(len(row)), key=lambda index: -row[index])[: min(k, self.cap)]
        return {str(index): {"logprob": row[index], "rank": 1} for index in {*likeliest, token}}

    def _listed(self, before: Sequence[int | None], tokens: Sequence[int], k: int) -> dict[str, Any]:
        rows = [
            None if token is None else torch.log_softmax(self.table[token].double(), -1).tolist() for token in before
        ]
        tops = [
            None if row is None else sorted(range(len(row)), key=lambda i, row=row: -row[i])[: min(k, self.cap)]
            for row in rows
        ]
        if self.shape == "content":
            content = [
                {"token": "x", "id": token, "logprob": row[token], "top_logprobs": [
                    {"token": ALPHABET[index], "id": index, "logprob": row[index]} for index in top
                ]}
                for row, top, token in zip(rows, tops, tokens, strict=True) if row is not None and top is not None
            ]  # fmt: skip
            return {"content": content}
        name = (lambda index: "\ufffd") if self.shape == "texts" else (lambda index: ALPHABET[index])
        return {
            "tokens": ["?"] * len(tokens),
            "token_logprobs": [None if row is None else row[token] for row, token in zip(rows, tokens, strict=True)],
            "top_logprobs": [
                None if row is None or top is None else {name(index): row[index] for index in top}
                for row, top in zip(rows, tops, strict=True)
            ],
        }


def status(code: int) -> EndpointError:
    kind: Any = {429: "status_429", 500: "status_5xx"}.get(code, "status_4xx")
    return EndpointError(f"{URL}: status {code} it said.", kind, code)


def ours(**changes: Any) -> FakeServer:
    """All that `quantgate serve` gives."""
    given: dict[str, Any] = {
        "whole": True, "forced": True, "returns_ids": True, "prompt_logprobs": 1000, "echo": 1000, "logprobs": 1000,
        "metrics": True, "tokenize": "prompt", "answers": {"yes": "yes"},
        "models": [{"id": "fake", "quantgate": OWN_FACTS}],
    }  # fmt: skip
    return FakeServer(**(given | changes))


def like_vllm(**changes: Any) -> FakeServer:
    given: dict[str, Any] = {
        "returns_ids": True, "prompt_logprobs": 20, "echo": 20, "logprobs": 20, "metrics": True, "tokenize": "prompt",
        "answers": {"yes": "yes"}, "models": [{"id": "fake", "max_model_len": 4096}],
    }  # fmt: skip
    return FakeServer(**(given | changes))


def like_llama_cpp(**changes: Any) -> FakeServer:
    given: dict[str, Any] = {
        "logprobs": 1_000_000, "shape": "content", "tokenize": "content", "answers": {"yes": "yes"},
        "props": {"default_generation_settings": {"n_ctx": 1024}, "total_slots": 2},
    }  # fmt: skip
    return FakeServer(**(given | changes))


def like_sglang(**changes: Any) -> FakeServer:
    return FakeServer(**({"echo": 1000, "logprobs": 1000, "answers": {"yes": "yes"}} | changes))


def model_on(server: FakeServer, capabilities: Any, **settings: Any) -> OpenAIModel:
    return OpenAIModel(SETTINGS, capabilities, LenientTokenizer(), connect=lambda _: server, **settings)


async def _one_turn() -> None:
    """Lets the other requests start, as a network would."""
    await asyncio.sleep(0)


def _within(asked: int, most: int) -> int:
    if asked > most:
        raise status(400)
    return asked
