"""A suite: which model, which arms, which traffic, which quality items, judged by which policy (YAML)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from quantgate.quality.config import QualityConfig
from quantgate.validation import load_yaml_model
from quantgate.workload.transforms import WorkloadTransform
from quantgate_engine import EngineConfig
from quantgate_kernels.kernel_set_names import AUTO, KernelSetName

SUITE_SCHEMA: Literal["quantgate.suite/1"] = "quantgate.suite/1"
AA_SUFFIX = "-aa"
"""The second appearance of the baseline is called `<baseline arm id>-aa`."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ArmConfig(_Strict):
    """One precision of the suite's model on the bundled engine. The id defaults to the scheme."""

    scheme: str
    id: str = Field("", pattern=r"^[A-Za-z0-9._-]*$")
    role: Literal["baseline", "candidate"] = "candidate"

    @property
    def arm_id(self) -> str:
        return self.id or self.scheme


class EngineSettings(_Strict):
    """The engine's settings, the same for every arm (see `quantgate_engine.EngineConfig`)."""

    max_active_requests: int = Field(16, ge=1)
    max_step_tokens: int = Field(256, ge=1)
    block_size: int = Field(16, ge=1)
    num_kv_blocks: int | None = Field(None, ge=1)
    max_context_tokens: int | None = Field(None, ge=1)
    threads: int | None = Field(None, ge=1)
    kernel_set: KernelSetName = AUTO

    def to_engine_config(self) -> EngineConfig:
        return EngineConfig(**self.model_dump())


class WorkloadConfig(_Strict):
    """The traffic: a trace (path beside the suite file), what is done to it, and how it is replayed."""

    trace: str
    format: str | None = None
    transforms: tuple[WorkloadTransform, ...] = ()
    blocks: int = Field(4, ge=1, description="counterbalanced blocks that each pass is cut into")
    passes: int = Field(1, ge=1)
    output_lengths: Literal["forced", "natural"] = "forced"
    lag_limit_ms: float = Field(50.0, gt=0, description="p99 of dispatch lag above which the run is invalid")
    request_timeout_s: float | None = Field(None, gt=0)


class Suite(_Strict):
    schema_: Literal["quantgate.suite/1"] = Field(SUITE_SCHEMA, alias="schema")
    name: str = Field(min_length=1)
    description: str = ""
    model: str
    seed: int = 0
    arms: tuple[ArmConfig, ...] = Field(min_length=2)
    aa: bool = Field(
        default=True, description="replay and judge the baseline against itself, to measure the run's own noise"
    )
    engine: EngineSettings = EngineSettings()
    workload: WorkloadConfig
    quality: QualityConfig | None = None
    policy: str

    @model_validator(mode="after")
    def _one_baseline_and_distinct_ids(self) -> Self:
        baselines = [arm.arm_id for arm in self.arms if arm.role == "baseline"]
        if len(baselines) != 1:
            raise ValueError(f"expected exactly one arm with role baseline, got {len(baselines)}")
        ids = [arm.arm_id for arm in self.arms]
        taken = [arm_id for arm_id in ids if ids.count(arm_id) > 1]
        if taken:
            raise ValueError(f"two arms are called {taken[0]!r}; give each an id of its own")
        if baselines[0] + AA_SUFFIX in ids:
            raise ValueError(f"an arm may not be called {baselines[0] + AA_SUFFIX!r}; that name is the A/A pair's")
        return self

    @property
    def baseline(self) -> ArmConfig:
        return next(arm for arm in self.arms if arm.role == "baseline")


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A validated suite and the file that it came from: paths inside it are relative to that file's folder."""

    suite: Suite
    path: Path

    @property
    def trace_path(self) -> Path:
        return self.path.parent / self.suite.workload.trace

    def with_changes(self, *, model: str | None = None, seed: int | None = None) -> LoadedSuite:
        """The suite with another model or seed; None keeps what it says."""
        changes = {key: value for key, value in (("model", model), ("seed", seed)) if value is not None}
        return replace(self, suite=self.suite.model_copy(update=changes))


def load_suite(path: Path) -> LoadedSuite:
    """Reads a suite file. Raises ConfigurationError with file, line and field."""
    return LoadedSuite(load_yaml_model(path, Suite), path)
