"""Which model answers, and what the server tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quantgate.capabilities.probes.asking import Asking, is_refusal
from quantgate.targets.openai.model_choice import chosen_model
from quantgate.targets.openai.surrogates import is_whole

_LIST = "the list of models"


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """ids: all that the server offers. slots: requests side by side. The hashes are those that our own server tells."""

    ids: list[str]
    max_context_tokens: int | None
    slots: int | None
    weights_sha256: str | None
    tokenizer_sha256: str | None


async def choose_model(asking: Asking) -> OfferedModel:
    """Puts the id of the model into `asking.model`. Raises EndpointError where none can be chosen."""
    answer = await asking.tried(_LIST, asking.calls.get_json("/v1/models"), is_generation=True)
    entries = answer.get("data") if isinstance(answer, Mapping) else None
    entries = entries if isinstance(entries, list) else []
    offered = {
        entry["id"]: entry for entry in entries if isinstance(entry, Mapping) and _text(entry.get("id")) is not None
    }
    failure, named = asking.failures.get(_LIST), asking.settings.model
    if failure is not None and named is None and not is_refusal(failure):
        raise failure
    why_none = failure.seen if failure else "no entry has a text as its id" if entries else ""
    asking.model = chosen_model(asking.settings.url, named, list(offered), why_none)
    entry = offered.get(asking.model, {})
    own = entry.get("quantgate")
    own = own if isinstance(own, Mapping) else {}
    told = _number(entry.get("max_model_len", own.get("max_context_tokens")))
    context, slots = (told, None) if told is not None else await _llama_cpp_facts(asking)
    return OfferedModel(
        ids=list(offered),
        max_context_tokens=context,
        slots=slots,
        weights_sha256=_text(own.get("weights_sha256")),
        tokenizer_sha256=_text(own.get("tokenizer_sha256")),
    )


async def _llama_cpp_facts(asking: Asking) -> tuple[int | None, int | None]:
    """Context of a slot and number of slots; under /v1/models llama.cpp lists the context of the training."""
    props = await asking.tried("the context length", asking.calls.get_json("/props"))
    if not isinstance(props, Mapping):
        return None, None
    defaults = props.get("default_generation_settings")
    context = defaults.get("n_ctx") if isinstance(defaults, Mapping) else None
    return _number(context), _number(props.get("total_slots"))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value and is_whole(value) else None
