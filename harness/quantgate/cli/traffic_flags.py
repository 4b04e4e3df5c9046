"""The flags that say which part of a trace is replayed, and how fast; several commands take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from quantgate.cli.flag_values import finite, settings_from_flags
from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate.workload.transforms import WorkloadTransform

WindowFlag = Annotated[str | None, typer.Option(help="START:LENGTH in seconds of the trace.")]
SpeedFlag = Annotated[float, typer.Option(min=0.001, help="2 replays twice as fast.", callback=finite)]
ThinFlag = Annotated[float, typer.Option(help="Share of sessions and requests that stay: above 0, at most 1.")]
MaxPromptTokensFlag = Annotated[int | None, typer.Option(min=1, help="Longest prompt.")]
MaxOutputTokensFlag = Annotated[int | None, typer.Option(min=1, help="Longest output.")]
ClipPolicyFlag = Annotated[Literal["drop", "cut"], typer.Option(help="What becomes of requests above a limit.")]
LimitFlag = Annotated[int | None, typer.Option(min=1, help="First requests only.")]
SampleFlag = Annotated[
    int | None,
    typer.Option(min=1, help="Draw that many requests at the log's rate, stratified by class, length and task."),
]


def chosen_transforms(
    *,
    window: str | None,
    speed: float,
    thin: float,
    max_prompt_tokens: int | None,
    max_output_tokens: int | None,
    clip_policy: Literal["drop", "cut"],
    limit: int | None,
    sample: int | None,
) -> tuple[WorkloadTransform, ...]:
    """The transforms that the flags ask for, in the order in which they are applied.

    Raises ConfigurationError naming the flag whose value is none.
    """
    from quantgate.workload.transforms import Clip, Limit, Sample, Speed, Thin, Window

    transforms: list[WorkloadTransform] = []
    if window is not None:
        start, length = _window(window)
        flags = {"start_s": "START of --window", "length_s": "LENGTH of --window"}
        transforms.append(settings_from_flags(Window, {"start_s": start, "length_s": length}, flags))
    if thin != 1.0:
        transforms.append(settings_from_flags(Thin, {"keep": thin}, {"keep": "--thin"}))
    if max_prompt_tokens is not None or max_output_tokens is not None:
        transforms.append(
            Clip(max_prompt_tokens=max_prompt_tokens, max_output_tokens=max_output_tokens, policy=clip_policy)
        )
    if sample is not None:
        transforms.append(Sample(requests=sample, keep_rate=True))
    if limit is not None:
        transforms.append(Limit(requests=limit))
    if speed != 1.0:
        transforms.append(settings_from_flags(Speed, {"factor": speed}, {"factor": "--speed"}))
    return tuple(transforms)


def _window(text: str) -> tuple[float, float]:
    start, _, length = text.partition(":")
    try:
        return float(start), float(length)
    except ValueError:
        raise ConfigurationError(f"--window is {text!r}; expected START:LENGTH in seconds, such as 600:120.") from None
