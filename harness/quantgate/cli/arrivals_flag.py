"""The flag `--arrivals`: a process and its settings in one word, such as gamma:2.5:3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quantgate.cli.flag_values import settings_from_flags
from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate.workload.transforms import Arrivals

FORMS = "constant:RATE, poisson:RATE, gamma:RATE:CV or ramp:RATE:TO_RATE"


def arrivals_from_flag(text: str) -> Arrivals:
    """Raises ConfigurationError that quotes the flag, or names the part of it whose value is none."""
    from quantgate.workload.transforms import Arrivals
    from quantgate.workload.transforms.arrival_processes import PROCESSES

    process, *parts = text.split(":")
    known: dict[str, tuple[str, ...]] = {name: ("rate", *its.own_settings) for name, its in PROCESSES.items()}
    settings = known.get(process, ())
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if not settings or len(numbers) != len(settings):
        raise ConfigurationError(f"--arrivals is {text!r}; expected {FORMS}, such as poisson:2.5.")
    return settings_from_flags(
        Arrivals,
        {"process": process, **dict(zip(settings, numbers, strict=True))},
        {name: f"{name.upper()} of --arrivals" for name in settings},
    )
