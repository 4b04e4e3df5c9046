"""Which model answers, and what the server tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quantgate.capabilities.probes.asking import Asking
from quantgate.targets.openai.errors import EndpointError


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
    answer = await asking.tried("the list of models", asking.calls.get_json("/v1/models"), needs_key=True)
    entries = answer.get("data") if isinstance(answer, Mapping) else None
    offered = {str(entry["id"]): entry for entry in entries or () if isinstance(entry, Mapping) and "id" in entry}
    asking.model = _chosen(asking, list(offered))
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


def _chosen(asking: Asking, offered: list[str]) -> str:
    url, named = asking.settings.url, asking.settings.model
    if named is not None:
        if offered and named not in offered:
            raise _no_model(f"{url}: does not offer the model {named!r}; expected one of: {', '.join(offered)}.")
        return named
    if not offered:
        raise _no_model(f"{url}: lists no model under /v1/models; name the model, or check the URL.")
    if len(offered) > 1:
        raise _no_model(f"{url}: offers {len(offered)} models; name one of them: {', '.join(offered)}.")
    return offered[0]


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
    return value if isinstance(value, str) and value else None


def _no_model(message: str) -> EndpointError:
    return EndpointError(message, "status_4xx")
