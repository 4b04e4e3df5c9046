"""What each server was found to give, and how far each quality tier was measured on each arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, count
from quantgate.report.run_view import RunView

_TIERS = {
    "distribution": "closeness to the baseline",
    "likelihood": "likelihood twins of the tasks",
    "answers": "answers to the tasks",
}
_STATUS = {"exact": "measured", "partial": "measured in part", "not_measurable": "not measurable"}

_FINDINGS = {
    "model": "model",
    "max_context_tokens": "longest prompt plus answer, tokens",
    "token_id_prompts": "prompts as token ids",
    "chat": "chat messages",
    "continuation_logits": "whole logits of given answers",
    "prompt_logprobs": "log-probs of prompt tokens, alternatives each",
    "echoed_logprobs": "log-probs of echoed tokens, alternatives each",
    "generated_logprobs": "log-probs of generated tokens, alternatives each",
    "forced_tokens": "forced answers",
    "token_ids_returned": "token ids of answers",
    "stream_usage": "token counts in streams",
    "ignore_eos": "ignore_eos honoured",
    "seed": "seeds honoured",
    "metrics": "/metrics",
    "tokenizer": "the run's tokenizer",
}
"""Fields of `quantgate.capabilities.capabilities.Capabilities`, in the order of the page."""
_ASKED_IN_TURN = ("prompt_logprobs", "echoed_logprobs")
"""The second is asked only where the first is not given, so that its absence says nothing then."""
_TOKENIZER = {
    "agrees": "reads as the server does",
    "differs": "differs from the server's",
    "not_compared": "could not be compared",
    "not_given": "not given",
}


def capabilities_table(view: RunView) -> Table | None:
    """None where no arm was probed: in-process arms give everything."""
    arms = [arm for arm in view.arms if arm.manifest.capabilities and arm.role != "aa"]
    if not arms:
        return None
    rows = [[title, *(_finding(arm.manifest.capabilities, name) for arm in arms)] for name, title in _FINDINGS.items()]
    return Table(["the server gives", *(arm.arm_id for arm in arms)], rows)


def tier_table(view: RunView) -> Table | None:
    """None where every tier was measured exactly on every arm, which needs no words."""
    statuses = view.run.manifest.quality_tiers
    if all(status.status == "exact" for status in statuses):
        return None
    rows = [
        [_TIERS[status.tier], status.arm_id, _STATUS[status.status], status.in_words or NOTHING] for status in statuses
    ]
    return Table(["tier", "arm", "how far", "why"], rows)


def _finding(capabilities: Mapping[str, Any], name: str) -> str:
    value = capabilities.get(name)
    preferred, other = _ASKED_IN_TURN
    if name == other and capabilities.get(preferred) is not None:
        return "not asked"
    if name == "tokenizer":
        return _TOKENIZER.get(str(value), str(value))
    return _words(value)


def _words(value: object) -> str:
    if value is None:
        return "not told"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return count(value) if isinstance(value, int) else str(value)
