"""What the quality tiers need of an arm, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from quantgate.capabilities.tier_support import EXACT, TierSupport
from quantgate.quality.scores import Scores
from quantgate.traces.record import Message


class Tokenizer(Protocol):
    """The part of a transformers fast tokenizer that the quality tiers use."""

    def encode(self, text: str, *, add_special_tokens: bool = ...) -> list[int]: ...

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = ...) -> str: ...

    def get_vocab(self) -> dict[str, int]: ...

    def apply_chat_template(
        self, conversation: Sequence[Mapping[str, str]], *, tokenize: bool = ..., add_generation_prompt: bool = ...
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class Continuations:
    """Given continuations of one prompt, to be scored; none is empty."""

    prompt_ids: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A chat to be answered. token_ids: under the run's chat template; empty: the arm uses its own on the messages."""

    messages: tuple[Message, ...]
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GeneratedAnswer:
    """tokens: without a token that ended the answer. truncated: the limit ended it, not the arm."""

    text: str
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class ItemFailure:
    """One item that an arm did not answer, and why; the arm itself goes on."""

    reason: str


@dataclass(frozen=True, slots=True)
class ArmSupport:
    """How far each tier can be measured on one arm.

    alternatives: tokens listed a position (None: whole distributions). token_id_prompts: whether it takes prompts as
    token ids, so that it can be given the very tokens of the other arms.
    """

    distribution: TierSupport = EXACT
    likelihood: TierSupport = EXACT
    answers: TierSupport = EXACT
    alternatives: int | None = None
    token_id_prompts: bool = True


class QualityModel(Protocol):
    """One arm as the quality tiers see it. An item that fails is a value; an exception is the end of the arm."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """None where nobody knows the arm's token ids."""
        ...

    @property
    def support(self) -> ArmSupport: ...

    @property
    def concurrency(self) -> int:
        """How many questions at a time serve the arm best."""
        ...

    def score(
        self, questions: Sequence[Continuations], chunk_tokens: int | None = None
    ) -> list[list[Scores] | ItemFailure]:
        """For each question, the scores of each of its continuations.

        `chunk_tokens` is the prompt's prefill chunk (None: the arm's own choice).
        """
        ...

    def generate(self, prompts: Sequence[ChatPrompt], max_tokens: int) -> list[GeneratedAnswer | ItemFailure]:
        """Greedy answers, one per prompt, in the prompts' order."""
        ...
