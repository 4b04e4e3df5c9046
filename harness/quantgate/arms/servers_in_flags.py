"""Servers as the command line names them: by URL or ID=URL, the baseline and one or more candidates."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.locations import Location


def named_servers(baseline: str, candidates: Sequence[str]) -> list[tuple[str, str]]:
    """Arm id and URL of each, the baseline first. Without an ID: `baseline`, and `candidate` or `candidate-1`, ..."""
    lone = len(candidates) == 1
    return [
        _named(baseline, "baseline"),
        *(
            _named(text, "candidate" if lone else f"candidate-{number}")
            for number, text in enumerate(candidates, start=1)
        ),
    ]


def flag_of_servers(location: Location) -> str | None:
    """The flag that became this part of a suite; None where it did not come from one of these servers."""
    match location:
        case ("arms", int(position), "launch", *_):
            return "--launch-candidate" if position else "--launch-baseline"
        case ("arms", int(), ("key_env" | "model" | "api") as field, *_):
            return f"--{field.replace('_', '-')}"
        case ("arms", int(position), *_):
            return "--candidate" if position else "--baseline"
        case ("arms",):
            return "--candidate"
        case _:
            return None


def _named(text: str, default: str) -> tuple[str, str]:
    """ID=URL, or a URL alone; an `=` inside the URL's query names nothing."""
    name, equals, url = text.partition("=")
    return (name, url) if equals and "://" not in name else (default, text)
