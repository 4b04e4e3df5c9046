"""The flags that say which part of a trace is taken, how fast, and who sends it; several commands take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from quantgate.cli.arrivals_flag import FORMS, arrivals_from_flag
from quantgate.cli.flag_values import finite, settings_from_flags
from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate.workload.transforms import RateCap, WorkloadTransform


LOAD_FLAGS = {"client_think_s": "--client-think"}
"""Names of the flags whose settings are called otherwise."""


@dataclass(frozen=True, slots=True)
class TransformFlags:
    """What is done to a trace before it is replayed, or written."""

    spread_ticks: Annotated[
        str | None,
        typer.Option(help="Repair a clock that ticks: auto finds its step; or seconds of a tick."),
    ] = None
    window: Annotated[str | None, typer.Option(help="START:LENGTH in seconds of the trace.")] = None
    speed: Annotated[float, typer.Option(min=0.001, help="2 replays twice as fast.", callback=finite)] = 1.0
    thin: Annotated[float, typer.Option(help="Share of sessions and requests that stay: above 0, at most 1.")] = 1.0
    max_prompt_tokens: Annotated[int | None, typer.Option(min=1, help="Longest prompt.")] = None
    max_output_tokens: Annotated[int | None, typer.Option(min=1, help="Longest output.")] = None
    clip_policy: Annotated[Literal["drop", "cut"], typer.Option(help="What becomes of requests above a limit.")] = (
        "drop"
    )
    limit: Annotated[int | None, typer.Option(min=1, help="First requests only.")] = None
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Draw that many requests at the log's rate, stratified by class, length and task."),
    ] = None
    arrivals: Annotated[
        str | None,
        typer.Option(help=f"Start sessions and single requests by a process: {FORMS}."),
    ] = None
    rate_cap: Annotated[
        str | None,
        typer.Option(help="RATE or RATE:WINDOW_S: sessions and single requests per second at most, in every window."),
    ] = None

    def transforms(self) -> tuple[WorkloadTransform, ...]:
        """What the flags ask for, in the order in which it is applied.

        Raises ConfigurationError naming the flag whose value is none.
        """
        from quantgate.workload.transforms import Clip, Limit, Sample, Speed, SpreadTicks, Thin, Window

        transforms: list[WorkloadTransform] = []
        if self.spread_ticks is not None:
            tick_s = None if self.spread_ticks == "auto" else _tick(self.spread_ticks)
            transforms.append(settings_from_flags(SpreadTicks, {"tick_s": tick_s}, {"tick_s": "--spread-ticks"}))
        if self.window is not None:
            start, length = _window(self.window)
            flags = {"start_s": "START of --window", "length_s": "LENGTH of --window"}
            transforms.append(settings_from_flags(Window, {"start_s": start, "length_s": length}, flags))
        if self.thin != 1.0:
            transforms.append(settings_from_flags(Thin, {"keep": self.thin}, {"keep": "--thin"}))
        if self.max_prompt_tokens is not None or self.max_output_tokens is not None:
            transforms.append(
                Clip(
                    max_prompt_tokens=self.max_prompt_tokens,
                    max_output_tokens=self.max_output_tokens,
                    policy=self.clip_policy,
                )
            )
        if self.sample is not None:
            transforms.append(Sample(requests=self.sample, keep_rate=True))
        if self.limit is not None:
            transforms.append(Limit(requests=self.limit))
        if self.speed != 1.0:
            transforms.append(settings_from_flags(Speed, {"factor": self.speed}, {"factor": "--speed"}))
        if self.arrivals is not None:
            # Behind speed, which would divide the times that the process drew.
            transforms.append(arrivals_from_flag(self.arrivals))
        if self.rate_cap is not None:
            # Last, so that nothing behind it moves starts together again.
            transforms.append(_rate_cap(self.rate_cap))
        return tuple(transforms)


@dataclass(frozen=True, slots=True)
class TrafficFlags(TransformFlags):
    """What is replayed, and who sends it."""

    clients: Annotated[
        int | None, typer.Option(min=1, help="Closed loop: so many clients, each sends when its last answer has ended.")
    ] = None
    client_think: Annotated[float, typer.Option(help="Seconds that such a client pauses after an answer.")] = 0.0

    def load(self) -> dict[str, Any]:
        """Settings of the workload that say who decides when a request is sent; see `LOAD_FLAGS`."""
        return {"clients": self.clients, "client_think_s": self.client_think}


def _tick(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(f"--spread-ticks is {text!r}; expected auto or seconds, such as 3.") from None


def _window(text: str) -> tuple[float, float]:
    start, _, length = text.partition(":")
    try:
        return float(start), float(length)
    except ValueError:
        raise ConfigurationError(f"--window is {text!r}; expected START:LENGTH in seconds, such as 600:120.") from None


def _rate_cap(text: str) -> RateCap:
    from quantgate.workload.transforms import RateCap

    rate, colon, window = text.partition(":")
    try:
        settings = {"rate": float(rate)} | ({"window_s": float(window)} if colon else {})
    except ValueError:
        raise ConfigurationError(
            f"--rate-cap is {text!r}; expected RATE or RATE:WINDOW_S, such as 10 or 0.5:60."
        ) from None
    return settings_from_flags(RateCap, settings, {"rate": "RATE of --rate-cap", "window_s": "WINDOW_S of --rate-cap"})
