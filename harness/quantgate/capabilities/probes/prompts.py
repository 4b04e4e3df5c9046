"""In which forms the server takes a prompt, and whether the run's tokenizer reads a text as it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quantgate.capabilities.answer_shapes import has_answer, returned_ids, usage_of
from quantgate.capabilities.capabilities import TokenizerMatch
from quantgate.capabilities.probes.asking import Asking
from quantgate.capabilities.tokenizer import ProbeTokenizer
from quantgate.workload.tokenizer_fingerprint import TEXT, fingerprint

TEXT_PROMPTS = "text prompts"
"""Name of the question under which its failure is kept."""
# Ids that every vocabulary has; used where nobody knows the ids of a text.
_ANY_IDS = tuple(range(1, 9))


@dataclass(frozen=True, slots=True)
class PromptForms:
    """token_ids: those of TEXT, or any where they are unknown. tokenizer_fingerprint: of the server's own reading."""

    token_ids: tuple[int, ...]
    completions: bool
    token_id_prompts: bool
    token_ids_returned: bool
    tokenize: bool
    tokenizer: TokenizerMatch
    tokenizer_fingerprint: str | None


async def probe_prompts(asking: Asking, tokenizer: ProbeTokenizer | None) -> PromptForms:
    own = tuple(tokenizer.encode(TEXT, add_special_tokens=False)) if tokenizer else ()
    servers = await _tokenized(asking)
    token_ids = own or servers or _ANY_IDS
    as_text = await asking.completion(TEXT_PROMPTS, TEXT, max_tokens=1)
    as_ids = await asking.completion("token-id prompts", token_ids, max_tokens=1)
    # A server that reads a list of ids as anything else counts other tokens, or answers it in several choices.
    takes_ids = has_answer(as_ids) and usage_of(as_ids, "prompt_tokens") in (None, len(token_ids))
    returned = False
    if takes_ids:
        answer = await asking.completion("returned token ids", token_ids, max_tokens=4, return_token_ids=True)
        returned = bool(returned_ids(answer))
    return PromptForms(
        token_ids=token_ids,
        completions=has_answer(as_text) or has_answer(as_ids),
        token_id_prompts=takes_ids,
        token_ids_returned=returned,
        tokenize=bool(servers),
        tokenizer_fingerprint=fingerprint(servers) if servers else None,
        tokenizer=_match(tokenizer, own, servers, usage_of(as_text, "prompt_tokens")),
    )


async def _tokenized(asking: Asking) -> tuple[int, ...]:
    """TEXT as the server reads it; the field is `prompt` with vLLM and ours, `content` with llama.cpp."""
    for body in (
        {"model": asking.model, "prompt": TEXT, "add_special_tokens": False},
        {"content": TEXT, "add_special": False},
    ):
        answer = await asking.tried("/tokenize", asking.calls.post_json("/tokenize", body))
        tokens = answer.get("tokens") if isinstance(answer, Mapping) else None
        if isinstance(tokens, list) and tokens and all(isinstance(token, int) for token in tokens):
            return tuple(tokens)
    return ()


def _match(
    tokenizer: ProbeTokenizer | None, own: Sequence[int], servers: Sequence[int], counted: int | None
) -> TokenizerMatch:
    """By the ids themselves; where the server shows none, by their number (with the special tokens or without)."""
    if tokenizer is None:
        return "not_given"
    if servers:
        with_special = tokenizer.encode(TEXT, add_special_tokens=True)
        return "agrees" if list(servers) in (list(own), list(with_special)) else "differs"
    if counted is None:
        return "not_compared"
    return "agrees" if counted in (len(own), len(tokenizer.encode(TEXT, add_special_tokens=True))) else "differs"
