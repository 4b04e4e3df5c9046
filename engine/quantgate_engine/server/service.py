"""What the routes share: the model, its engine, and the books of who is being served."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.chat_messages import ChatMessage
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.base import TokenScore
from quantgate_engine.llm import LLM
from quantgate_engine.prompts import Prompt, encode_prompt, turn_starts
from quantgate_engine.sampling.seeds import derived_seed
from quantgate_engine.server.api_error import ApiError, bad_request
from quantgate_engine.server.gate import Gate
from quantgate_engine.server.metrics import ServiceMetrics
from quantgate_engine.server.settings import ServerSettings
from quantgate_engine.stepped_engine import SteppedEngine
from quantgate_engine.text.token_pieces import TokenPieces

# Below this many characters a thread costs more than the tokenizer does.
_SHORT_TEXT = 8_192


class Service:
    """A loaded model as one server serves it; see `create_app`."""

    def __init__(
        self,
        llm: LLM,
        settings: ServerSettings,
        epoch_seconds: Callable[[], float],
        core: SteppedEngine | None = None,
    ) -> None:
        self.llm = llm
        self.settings = settings
        self.engine = AsyncLLM(core or llm, settings.max_unread_chunks)
        self.tokenizer = llm.tokenizer
        self.token_pieces = TokenPieces(llm.tokenizer)
        self.gate = Gate(self.engine.max_active_requests + settings.max_queue)
        self.metrics = ServiceMetrics(self.engine)
        self.fingerprint = f"{llm.info.scheme}-{llm.info.weights_sha256[:12]}"
        self._epoch_seconds = epoch_seconds
        self.started_s = self.now_s()
        self._numbers = itertools.count(1)
        self._unseeded = itertools.count(1)

    def now_s(self) -> int:
        """Whole seconds since 1970."""
        return int(self._epoch_seconds())

    def next_id(self, prefix: str) -> str:
        return f"{prefix}-{next(self._numbers)}"

    def seed_of(self, requested: int | None) -> int:
        """The request's own seed, else one that no earlier request had."""
        return requested if requested is not None else derived_seed(self.settings.seed, next(self._unseeded))

    def check_model(self, name: str | None) -> None:
        """Raises ApiError 404 for another model than the one that is served."""
        if name not in (None, self.settings.served_name):
            raise ApiError(
                404,
                f"The model {name!r} is not served here; expected {self.settings.served_name!r}.",
                param="model",
                code="model_not_found",
            )

    def check_slo_class(self, name: str | None) -> None:
        """Raises ApiError 400 for an SLO class that the engine does not have."""
        known = self.engine.slo_classes
        if name is not None and name not in known:
            raise bad_request(f"slo_class is {name!r}; expected one of {', '.join(known)}.", "slo_class")

    def check_token_ids(self, token_ids: Sequence[int], param: str) -> None:
        """Raises ApiError 400 for a token that the model does not have."""
        if max(token_ids, default=0) >= self.llm.vocab_size:
            raise bad_request(
                f"{param} holds token id {max(token_ids)}; expected 0 to {self.llm.vocab_size - 1}, the model's "
                "vocabulary.",
                param,
            )

    async def encode(self, prompt: Prompt, param: str, **options: Any) -> tuple[int, ...]:
        """Token ids of a prompt (see `encode_prompt`); a long one is encoded beside the event loop.

        Raises ApiError 400 where it cannot be encoded, or holds tokens that the model does not have.
        """
        try:
            if len(str(prompt)) < _SHORT_TEXT:
                token_ids = encode_prompt(self.tokenizer, prompt, **options)
            else:
                token_ids = await asyncio.to_thread(encode_prompt, self.tokenizer, prompt, **options)
        except ConfigurationError as refused:
            raise bad_request(str(refused), param) from refused
        self.check_token_ids(token_ids, param)
        return token_ids

    async def turn_starts(
        self, messages: Sequence[ChatMessage], token_ids: Sequence[int], template_arguments: Mapping[str, Any]
    ) -> tuple[int, ...]:
        """Where the turns of an encoded chat start; none where admission cuts nothing from a context."""
        if not self.engine.degrades:
            return ()
        return await asyncio.to_thread(turn_starts, self.tokenizer, messages, token_ids, template_arguments)

    async def token_scores(self, token_ids: Sequence[int], alternatives: int, param: str) -> list[TokenScore]:
        """Raises ApiError 400 where the tokens are too many, and 500 where the model can say nothing of them."""
        try:
            return await asyncio.to_thread(self.llm.token_scores, token_ids, alternatives)
        except ConfigurationError as refused:
            raise bad_request(str(refused), param) from refused
        except RunError as failed:
            raise ApiError(500, str(failed), error_type="server_error") from failed
