"""The answers that a request asks for, as the engine is to compute them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling.seeds import derived_seed
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.server.api_error import ApiError, bad_request
from quantgate_engine.server.protocol.generation import GenerationRequest
from quantgate_engine.server.service import Service

_OF_FIELD = re.compile(r"SamplingParams\.(\w+)")


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to one prompt. params: None where nothing is to be generated."""

    index: int
    request_id: str
    prompt_token_ids: tuple[int, ...]
    params: SamplingParams | None
    terms: RequestTerms


def make_choices(
    service: Service,
    body: GenerationRequest,
    prompts: Sequence[tuple[int, ...]],
    *,
    answer_id: str,
    max_tokens: int | None,
    logprobs: int | None,
    turn_starts: tuple[int, ...] = (),
) -> list[Choice]:
    """`body.n` choices for each prompt; choice i of a prompt draws by the i-th seed made of the request's.

    All but the first of a prompt are its forks, so that the prompt is computed once. max_tokens: None for the server's
    default, or what the engine can ever run of it. turn_starts: see `RequestTerms`.
    Raises ApiError 400 where the fields do not go together, the engine has no such SLO class, or a prompt could never
    run.
    """
    seed, limit_s = service.seed_of(body.seed), service.settings.request_timeout_s
    service.check_slo_class(body.slo_class)
    choices: list[Choice] = []
    for prompt in prompts:
        first_id = f"{answer_id}-{len(choices)}"
        limit = _default_limit(service, body, prompt, turn_starts) if max_tokens is None else max_tokens
        for number in range(body.n):
            try:
                params = body.sampling_params(limit, derived_seed(seed, number), logprobs) if limit > 0 else None
            except ConfigurationError as wrong:
                field = _OF_FIELD.match(str(wrong))
                raise bad_request(_OF_FIELD.sub(r"\1", str(wrong)), field and field[1]) from wrong
            terms = body.terms(limit_s, fork_of=first_id if number else None, turn_starts=turn_starts)
            choice = Choice(len(choices), f"{answer_id}-{len(choices)}", prompt, params, terms)
            _refuse_impossible(service, choice, body.limit_field)
            choices.append(choice)
    return choices


def _default_limit(
    service: Service, body: GenerationRequest, prompt: tuple[int, ...], turn_starts: tuple[int, ...]
) -> int:
    """At least 1: a prompt that leaves no room is refused like any other."""
    terms = body.terms(service.settings.request_timeout_s, fork_of=None, turn_starts=turn_starts)
    return service.engine.output_room(prompt, SamplingParams(max_tokens=service.settings.default_max_tokens), terms)


def _refuse_impossible(service: Service, choice: Choice, limit_field: str) -> None:
    if choice.params is None:
        return
    refusal = service.engine.refusal(choice.request_id, choice.prompt_token_ids, choice.params, choice.terms)
    if refusal is not None:
        too_long = len(choice.prompt_token_ids) + choice.params.max_tokens > service.engine.max_sequence_tokens
        # A prompt that is too long by itself never comes so far.
        code = "context_length_exceeded" if too_long else "cannot_run"
        raise ApiError(400, refusal, param=limit_field, code=code)
