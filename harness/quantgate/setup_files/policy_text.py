"""A policy as the text of a commented YAML file, with the measurements that its limits came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from quantgate.gate.policy import GainRule, Policy, Rule
from quantgate.gate.wording import write
from quantgate.setup_files.slo_proposal import ClassProposals, NoProposal, Proposal
from quantgate_engine.counted import counted

_WRITTEN_APART = {"schema_", "name", "description", "slo", "rules", "gain"}


def policy_text(name: str, origin: str, base: Policy, proposals: Mapping[str, ClassProposals]) -> str:
    """The file's text. origin: where the limits came from, one line. base: the policy that everything else is from."""
    others = base.model_dump(by_alias=True, exclude=_WRITTEN_APART)
    lines = [
        f"# SLO limits: {origin}.",
        f"# All else is from policy {base.name}: set the margins to what your users would notice.",
        f"schema: {base.schema_}",
        f"name: {as_yaml(name)}",
        f"description: {as_yaml(base.description)}",
        "slo:  # milliseconds, per request",
        *(line for slo_class, own in proposals.items() for line in _class_lines(slo_class, own)),
        "rules:",
        *(f"  - {_flow(rule)}" for rule in base.rules),
        *_gain_lines(base),
        *(f"{key}: {as_yaml(value)}" for key, value in others.items()),
    ]
    return "\n".join(lines) + "\n"


def as_yaml(value: Any) -> str:
    """A value on one line, quoted where YAML would read it otherwise."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def _class_lines(slo_class: str, proposals: ClassProposals) -> list[str]:
    limits, gaps = [], []
    for metric, found in proposals.items():
        match found:
            case Proposal():
                limits.append(f"    {metric}: {found.limit:.12g}  # {_origin(found)}")
            case NoProposal():
                gaps.append(f"    # {metric}: no limit; {found.reason}")
    key = as_yaml(slo_class)
    return [f"  {key}:" if limits else f"  {key}: {{}}", *limits, *gaps]


def _origin(found: Proposal) -> str:
    value, upper = write(found.value, "ms"), write(found.upper, "ms")
    return f"{found.percentile} was {value}, at most {upper}; {counted(found.n, 'request')}"


def _gain_lines(base: Policy) -> list[str]:
    if base.gain is None:
        return ["gain: null"]
    which = "any" if base.gain.any is not None else "all"
    return ["gain:", f"  {which}:", *(f"    - {_flow(rule)}" for rule in base.gain.rules)]


def _flow(rule: Rule | GainRule) -> str:
    """A rule on one line, its id first, without what is at its default."""
    stated = rule.model_dump(exclude_defaults=True)
    return as_yaml({key: stated[key] for key in sorted(stated, key=lambda key: key != "id")})
