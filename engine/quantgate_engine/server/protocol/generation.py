"""The fields that both kinds of completion share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from quantgate_engine.sampling_params import MAX_LOGIT_BIAS, MAX_LOGPROBS, MAX_PENALTY, SamplingParams
from quantgate_engine.server.protocol.forms import LIST, TEXT, text_or_list
from quantgate_engine.server.protocol.scheduling import SchedulingFields
from quantgate_engine.server.protocol.unsupported import refuse_unsupported

MAX_CHOICES = 128
MAX_STOP_STRINGS = 16
MAX_STOP_TOKENS = 4096
MAX_INTEGER = 2**31 - 1
"""Above every number of tokens and every token id; what is larger is not repeated digit by digit."""

# At each token, every beginning of every stop string is looked for.
StopString = Annotated[str, Field(min_length=1, max_length=1024)]
Alternatives = Annotated[int, Field(ge=0, le=MAX_LOGPROBS)]
TokenId = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
# The first wrong entry is enough to refuse a list; to collect an error for each can take minutes.
SomeTokenIds = Annotated[list[TokenId], Field(fail_fast=True)]
Penalty = Annotated[float, Field(ge=-MAX_PENALTY, le=MAX_PENALTY)]
Bias = Annotated[float, Field(ge=-MAX_LOGIT_BIAS, le=MAX_LOGIT_BIAS)]
_TOKEN_ID_AS_NAME = re.compile(r"0|[1-9][0-9]{0,8}")


def _token_id_as_name(name: str) -> str:
    # A name in JSON, so a text, and one way to write each: two biases of one token would leave open which counts.
    if _TOKEN_ID_AS_NAME.fullmatch(name) is None:
        raise PydanticCustomError("token_id_as_name", "expected a token id as the name, such as 42 in quotes")
    return name


TokenIdAsName = Annotated[str, AfterValidator(_token_id_as_name)]


def _together(field: str, message: str) -> PydanticCustomError:
    return PydanticCustomError("not_together", "{what}", {"field": field, "what": message})


class StreamOptions(BaseModel):
    """include_usage: a last event with the counts of tokens."""

    model_config = ConfigDict(strict=True, frozen=True)

    include_usage: bool = False


class GenerationRequest(SchedulingFields, ABC):
    """How an answer is to be drawn and scheduled, and what is to be told about it.

    Fields without an effect on the answer (`user`, `metadata` ...) are ignored, and null is as good as absent. Beside
    OpenAI's fields stand those that vLLM has too: top_k, min_p, repetition_penalty, stop_token_ids, ignore_eos,
    chat_template_kwargs, prompt_logprobs, return_token_ids and return_tokens_as_token_ids; forced_token_ids is this
    server's own.

    A subclass has fields of its own; `neutral_values`: see `refuse_unsupported`.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)

    neutral_values: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    model: str | None = None
    n: int = Field(default=1, ge=1, le=MAX_CHOICES)
    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=-1, le=MAX_INTEGER)
    min_p: float = Field(default=0.0, ge=0, le=1)
    repetition_penalty: float = Field(default=1.0, gt=0)
    presence_penalty: Penalty = 0.0
    frequency_penalty: Penalty = 0.0
    logit_bias: Annotated[dict[TokenIdAsName, Bias], Field(fail_fast=True)] = Field(default_factory=dict)
    seed: int | None = None
    stop: Annotated[
        Annotated[StopString, Tag(TEXT)]
        | Annotated[list[StopString], Field(max_length=MAX_STOP_STRINGS, fail_fast=True), Tag(LIST)],
        text_or_list("a text, or a list of texts, at which the answer ends"),
    ] = Field(default_factory=list)
    stop_token_ids: Annotated[SomeTokenIds, Field(max_length=MAX_STOP_TOKENS)] = Field(default_factory=list)
    ignore_eos: bool = False
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    prompt_logprobs: Alternatives | None = None
    return_token_ids: bool = False
    return_tokens_as_token_ids: bool = False
    forced_token_ids: SomeTokenIds = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        refuse_unsupported(fields, cls.neutral_values)
        return {name: value for name, value in fields.items() if value is not None}

    @model_validator(mode="after")
    def _forced_tokens_fit(self) -> Self:
        forced = len(self.forced_token_ids)
        if forced and self.stop_strings:
            raise _together("stop", "a forced continuation does not stop; leave out stop or forced_token_ids")
        if forced and self.requested_tokens != forced:
            raise _together(
                "forced_token_ids",
                f"there are {forced}, and {self.limit_field} is {self.requested_tokens}; leave {self.limit_field} out, "
                "or give as many",
            )
        return self

    @property
    @abstractmethod
    def requested_tokens(self) -> int | None:
        """Tokens of an answer; None where the request leaves it to the server."""

    @property
    def limit_field(self) -> str:
        """The field that limits the tokens of an answer."""
        return "max_tokens"

    @property
    def stop_strings(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    @cached_property
    def _biases(self) -> dict[int, float]:
        # Once for all choices: there may be one for each token of the vocabulary.
        return {int(token_id): bias for token_id, bias in self.logit_bias.items()}

    def sampling_params(self, max_tokens: int, seed: int, logprobs: int | None) -> SamplingParams:
        """Raises ConfigurationError where the fields do not go together."""
        return SamplingParams(
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_k=max(self.top_k, 0),
            top_p=self.top_p,
            min_p=self.min_p,
            seed=seed,
            stop=self.stop_strings,
            stop_token_ids=tuple(self.stop_token_ids),
            ignore_eos=self.ignore_eos,
            logprobs=logprobs,
            forced_token_ids=tuple(self.forced_token_ids),
            repetition_penalty=self.repetition_penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            logit_bias=self._biases,
        )
