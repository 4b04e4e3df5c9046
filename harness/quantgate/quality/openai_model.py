"""An arm behind an OpenAI-compatible server as a `QualityModel`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from quantgate.capabilities.capabilities import Capabilities
from quantgate.capabilities.server_calls import ServerCalls
from quantgate.capabilities.tier_support import partial
from quantgate.capabilities.token_texts import TokenTexts
from quantgate.quality.over_http.answers import answer_prompt
from quantgate.quality.over_http.asked_server import AskedServer
from quantgate.quality.over_http.bounded_calls import BoundedCalls
from quantgate.quality.over_http.scorers import SCORERS
from quantgate.quality.quality_model import (
    ArmSupport,
    ChatPrompt,
    Continuations,
    GeneratedAnswer,
    ItemFailure,
    Tokenizer,
)
from quantgate.quality.scores import Scores
from quantgate.targets.openai.endpoint import Endpoint
from quantgate.targets.openai.errors import EndpointError
from quantgate.targets.openai.settings import EndpointSettings

Asked = TypeVar("Asked")
Result = TypeVar("Result")
Connect = Callable[[EndpointSettings], AbstractAsyncContextManager[ServerCalls]]

CONCURRENCY = 8
ALTERNATIVES = 20
"""Tokens compared a position where whole distributions are not to be had: vLLM's own limit. More would tighten the
bound a little, and multiply what is sent for every token of every prompt."""


class OpenAIModel:
    """Asks the server as its `capabilities` allow. Not for use inside a running event loop: each call has its own.

    tokenizer: the run's; without it nothing but answers to messages can be measured. concurrency: requests in flight at
    most; never more than the server has slots, since those that wait for one lose what it kept of their prompt.
    No request is repeated: an item that fails is an ItemFailure. Raises EndpointError where the server is gone or
    refuses the key.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        capabilities: Capabilities,
        tokenizer: Tokenizer | None,
        *,
        concurrency: int = CONCURRENCY,
        alternatives: int = ALTERNATIVES,
        connect: Connect = Endpoint,
    ) -> None:
        given = {} if tokenizer is not None else {"tokenizer": "not_given"}
        self._capabilities = capabilities.model_copy(update=given)
        self._settings = settings
        self._tokenizer = tokenizer
        self._concurrency = min(concurrency, capabilities.slots or concurrency)
        self._connect = connect
        self._texts = TokenTexts(tokenizer)
        listed = self._capabilities.alternatives
        self._alternatives = None if listed is None else min(listed, alternatives)

    @property
    def tokenizer(self) -> Tokenizer | None:
        return self._tokenizer

    @property
    def concurrency(self) -> int:
        return self._concurrency

    @property
    def support(self) -> ArmSupport:
        found = self._capabilities
        distribution = found.distribution
        if distribution.status == "partial":
            distribution = partial(
                f"only the {self._alternatives} likeliest tokens of a position are compared: KL is a lower bound over "
                "them, called kl_topk"
            )
        return ArmSupport(distribution, found.likelihood, found.answers, self._alternatives)

    def score(
        self, questions: Sequence[Continuations], chunk_tokens: int | None = None
    ) -> list[list[Scores] | ItemFailure]:
        """`chunk_tokens` beside another concurrency: most servers have no such setting, and meet other batches so."""
        method = self._capabilities.scoring
        if method is None:
            raise ValueError("this server does not score given tokens; its support says so")
        scorer = SCORERS[method]
        limit = self._concurrency if chunk_tokens is None else max(1, self._concurrency // 2)
        return self._each(questions, lambda server, question: scorer(server, question, chunk_tokens), limit)

    def generate(self, prompts: Sequence[ChatPrompt], max_tokens: int) -> list[GeneratedAnswer | ItemFailure]:
        returned = self._capabilities.token_ids_returned
        return self._each(
            prompts,
            lambda server, prompt: answer_prompt(
                server, prompt, max_tokens, self._tokenizer, token_ids_returned=returned
            ),
            self._concurrency,
        )

    def _each(
        self, asked: Sequence[Asked], ask: Callable[[AskedServer, Asked], Awaitable[Result]], limit: int
    ) -> list[Result | ItemFailure]:
        async def all_of_them() -> list[Result | ItemFailure]:
            async with self._connect(self._settings) as calls:
                server = self._server(BoundedCalls(calls, limit))
                return await asyncio.gather(*(_or_failure(ask(server, one)) for one in asked))

        return asyncio.run(all_of_them())

    def _server(self, calls: ServerCalls) -> AskedServer:
        extra = {name: value for name, value in self._settings.extra_body.items() if value is not None}
        return AskedServer(
            calls,
            common={**extra, "model": self._capabilities.model},
            texts=self._texts,
            alternatives=self._alternatives or 0,
            most_alternatives=self._capabilities.alternatives or 0,
            template_arguments=self._settings.chat_template_kwargs,
        )


async def _or_failure(answer: Awaitable[Result]) -> Result | ItemFailure:
    try:
        return await answer
    except EndpointError as error:
        if error.kind == "connect" or error.status in (401, 403):
            raise
        return ItemFailure(_failure_words(error))
    except ValueError as error:
        return ItemFailure(f"the server's answer could not be read: {error}")


def _failure_words(error: EndpointError) -> str:
    """Without what the server said: it may quote the prompt, and this goes into the manifest, also without text."""
    status = f", status {error.status}" if error.status is not None else ""
    return f"the request failed ({error.kind}{status})"
