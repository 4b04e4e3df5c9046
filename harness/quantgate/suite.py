"""A suite: which model, which arms, which traffic, which quality items, judged by which policy (YAML)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from quantgate.arm_life.settings import COMMAND_FIELD
from quantgate.arms.config import ArmConfig, BundledArmConfig, OpenAIArmConfig
from quantgate.engine_settings.engine import EngineSettings
from quantgate.placed_error import PlacedError
from quantgate.problem import first_problem
from quantgate.quality.config import QualityConfig
from quantgate.traces.import_settings import OtherParts
from quantgate.traces.native_row import LONGEST_SECONDS
from quantgate.validation import load_yaml_model
from quantgate.workload.blocks import USUAL_BLOCKS
from quantgate.workload.transforms import WorkloadTransform
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown, shown_name

SUITE_SCHEMA: Literal["quantgate.suite/1"] = "quantgate.suite/1"
_LARGEST_SEED = 2**63 - 1
AA_SUFFIX = "-aa"
"""The second appearance of the baseline is called `<baseline arm id>-aa`."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class WorkloadConfig(_Strict):
    """The traffic: a trace (path beside the suite file), what is done to it, and how it is replayed."""

    trace: str = Field(min_length=1)
    format: str | None = None
    columns: str | None = Field(None, description="column map of a request log (path beside the suite file)")
    redact: bool = Field(
        default=True, description="replace known kinds of personal data in logs, conversations and spans"
    )
    strict: bool = Field(default=False, description="refuse a log for the first row that would be left out and counted")
    other_parts: OtherParts = Field(
        "refuse", description="what becomes of parts of messages that are no text: refuse the log, or drop and count"
    )
    block_tokens: int | None = Field(
        None, ge=1, description="tokens of each of the blocks whose ids a Mooncake trace tells; null: 512"
    )
    history: Literal["recorded", "live"] = Field(
        "recorded", description="whose answers later turns of a session see: the log's own or the arm's own"
    )
    # YAML knows lists only: a tuple is asked for less strictly than the values in it.
    transforms: tuple[WorkloadTransform, ...] = Field((), strict=False)
    blocks: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        USUAL_BLOCKS,
        description="counterbalanced blocks that each pass is cut into; auto takes 4, or fewer where the traffic has "
        "fewer sessions and single requests",
    )
    passes: int = Field(1, ge=1)
    clients: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="closed loop: so many clients send the traffic in its order, each when its last answer has ended; "
        "null: open loop, by the schedule",
    )
    client_think_s: float = Field(
        0.0, ge=0, le=LONGEST_SECONDS, allow_inf_nan=False, description="closed loop: pause of a client after an answer"
    )
    load_processes: int = Field(
        1,
        ge=1,
        le=256,
        description="processes that send the traffic to servers, each its part of one schedule",
    )
    output_lengths: Literal["forced", "natural", "auto"] = Field(
        "forced", description="forced decodes exactly max_tokens; auto does so where every arm can be made to"
    )
    lag_limit_ms: float = Field(
        50.0, gt=0, allow_inf_nan=False, description="p99 of dispatch lag above which the run is invalid"
    )
    request_timeout_s: float | None = Field(None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _every_setting_of_the_load_has_an_effect(self) -> Self:
        if self.clients is None and self.client_think_s > 0:
            raise PlacedError((("client_think_s",), "only the clients of a closed loop pause; say how many in clients"))
        if self.clients is not None and any(transform.kind == "arrivals" for transform in self.transforms):
            message = (
                "the clients of a closed loop send when they are free, so that arrivals would change nothing; drop one"
            )
            raise PlacedError((("clients",), message))
        if self.load_processes > 1 and (self.clients is not None or self.history == "live"):
            other = "the clients of a closed loop" if self.clients is not None else "live history"
            message = f"several load processes deal out a schedule, which {other} would change; drop one of the two"
            raise PlacedError((("load_processes",), message))
        return self


class Suite(_Strict):
    schema_: Literal["quantgate.suite/1"] = Field(SUITE_SCHEMA, alias="schema")
    name: str = Field(min_length=1)
    description: str = ""
    model: str | None = Field(None, min_length=1, description="the model of the bundled engine's arms")
    tokenizer: str | None = Field(
        None,
        min_length=1,
        description="known name, folder or Hub id of the tokenizer that the servers use; null: nobody knows it",
    )
    seed: int = Field(0, ge=0, le=_LARGEST_SEED)
    arms: tuple[ArmConfig, ...] = Field(min_length=2, strict=False)
    device: Literal["shared", "one_at_a_time"] = Field(
        "shared", description="one_at_a_time: the device holds one arm; launched servers take turns on it"
    )
    aa: bool = Field(
        default=True, description="replay and judge the baseline against itself, to measure the run's own noise"
    )
    engine: EngineSettings = EngineSettings()
    workload: WorkloadConfig
    quality: QualityConfig | None = None
    policy: str

    @field_validator("name")
    @classmethod
    def _the_name_can_be_shown(cls, name: str) -> str:
        if not (name.isprintable() and name.strip()):
            raise ValueError(f"expected printable characters on one line, got {shown(name)}")
        return name

    @field_validator("arms")
    @classmethod
    def _one_baseline_and_distinct_ids(cls, arms: tuple[ArmConfig, ...]) -> tuple[ArmConfig, ...]:
        baselines = [arm.arm_id for arm in arms if arm.role == "baseline"]
        if len(baselines) != 1:
            raise ValueError(f"expected exactly one arm with role baseline, got {len(baselines)}")
        ids = [arm.arm_id for arm in arms]
        for position, arm_id in enumerate(ids):
            if arm_id in ids[:position]:
                raise PlacedError(((position,), f"two arms are called {shown(arm_id)}; give each an id of its own"))
            if arm_id == baselines[0] + AA_SUFFIX:
                raise PlacedError(
                    ((position,), f"an arm may not be called {shown(arm_id)}; that name is the A/A pair's")
                )
        return arms

    @model_validator(mode="after")
    def _targets_have_what_they_need(self) -> Self:
        bundled = [position for position, arm in enumerate(self.arms) if isinstance(arm, BundledArmConfig)]
        if bundled and self.model is None:
            raise PlacedError(
                (
                    ("arms", bundled[0]),
                    f"arm {shown_name(self.arms[bundled[0]].arm_id)} runs on the bundled engine and needs a model; add "
                    "the key model to the suite",
                )
            )
        if bundled and self.workload.load_processes > 1:
            message = (
                "load processes send to servers over HTTP, but arm "
                f"{shown_name(self.arms[bundled[0]].arm_id)} runs on the bundled engine; drop load_processes"
            )
            raise PlacedError((("workload", "load_processes"), message))
        if self.device == "one_at_a_time":
            if self.workload.passes % 2:
                message = (
                    "the device holds one arm at a time, so that whole passes take turns (A B, B A), but passes is "
                    f"{self.workload.passes}; give an even number"
                )
                raise PlacedError((("workload", "passes"), message), (("device",), message))
            for position, arm in enumerate(self.arms):
                if isinstance(arm, OpenAIArmConfig) and arm.launch:
                    continue
                raise PlacedError(
                    (
                        ("arms", position),
                        "the device holds one arm at a time, but nothing says how to launch arm "
                        f"{shown_name(arm.arm_id)}; say how in {COMMAND_FIELD}, or let the arms share the device",
                    )
                )
        return self

    def as_recorded(self) -> dict[str, Any]:
        """The suite as JSON values; a run from it is the same experiment (see `EngineSettings.as_recorded`)."""
        return self.model_dump(mode="json", by_alias=True) | {"engine": self.engine.as_recorded()}

    @property
    def baseline(self) -> BundledArmConfig | OpenAIArmConfig:
        return next(arm for arm in self.arms if arm.role == "baseline")


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A validated suite and the file that it came from: paths inside it are relative to that file's folder."""

    suite: Suite
    path: Path

    @property
    def trace_path(self) -> Path:
        return self.path.parent / self.suite.workload.trace

    @property
    def columns_path(self) -> Path | None:
        columns = self.suite.workload.columns
        return None if columns is None else self.path.parent / columns

    def with_changes(self, *, model: str | None = None, seed: int | None = None) -> LoadedSuite:
        """The suite with another model or seed; None keeps what it says."""
        changes = {key: value for key, value in (("model", model), ("seed", seed)) if value is not None}
        return replace(self, suite=self.suite.model_copy(update=changes))

    def with_schemes(self, schemes: Sequence[str]) -> LoadedSuite:
        """The suite with builds of its model for arms, the baseline's scheme first.

        Raises ConfigurationError where they are not two or more, each with a name of its own, or there is no model.
        """
        arms = [{"scheme": name, "role": "candidate" if place else "baseline"} for place, name in enumerate(schemes)]
        data = {name: getattr(self.suite, name) for name in Suite.model_fields} | {"arms": arms}
        try:
            return replace(self, suite=Suite.model_validate(data))
        except ValidationError as error:
            raise ConfigurationError(f"--schemes: {first_problem(error, data, Suite).message}.") from error


def load_suite(path: Path) -> LoadedSuite:
    """Reads a suite file. Raises ConfigurationError with file, line and field."""
    return LoadedSuite(load_yaml_model(path, Suite), path)
