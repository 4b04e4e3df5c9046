"""`run.json`: what was run, on what, with what, so that a reader can trust and repeat it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from quantgate.store.tier_status import TierStatus
from quantgate_kernels.roofline import Width

MANIFEST_SCHEMA: Literal["quantgate.run/1"] = "quantgate.run/1"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class KVStay(_Strict):
    """Who held blocks of the KV cache (see `quantgate_engine.kv.holding.KVHolding`)."""

    holder: str
    kind: Literal["request", "session", "swapped"]
    blocks: int
    held_seconds: float
    block_seconds: float


class StepWork(_Strict):
    """What the steps of an arm must at least read and compute (see `quantgate_kernels.roofline.DecoderWork`)."""

    linear_bytes: int
    head_bytes: int
    kv_bytes_per_token: int
    linear_parameters: int
    head_parameters: int
    query_size: int
    windows: tuple[tuple[int | None, int], ...]
    linear_width: Width
    width: Width


class ArmManifest(_Strict):
    """One arm as it was loaded (see `quantgate.targets.base.ArmDescription`)."""

    arm_id: str
    role: Literal["baseline", "candidate", "aa"]
    target: str
    model: str
    scheme: str
    kv_dtype: str
    compute_dtype: str
    head_dtype: str
    weight_bytes: int | None
    linear_weight_bytes: int | None
    load_seconds: float | None
    peak_memory_bytes: int | None = None
    kernel_set: str
    kernel_paths: dict[str, str]
    notes: list[str] = []
    server: str | None = None
    tokenizer_fingerprint: str | None = None
    capabilities: dict[str, Any] = {}
    kv_bytes_per_token: int | None = None
    """Keys and values of all layers; None where it is not told."""
    kv_sessions: list[KVStay] = []
    """Sessions that held most of the cache between their turns, the costliest first."""
    step_work: StepWork | None = None
    """None for servers, and in runs that did not record it yet."""
    joules_per_token: float | None = None
    """Energy of the device in the arm's turns, for each output token; None where the device does not tell."""
    provenance: dict[str, Any] = {}
    """Where the weights came from and how they were quantized; empty where it is not told."""
    recorded_steps: int | None = None
    """Shapes of decode steps that a GPU replays as CUDA graphs; 0: none is; None: no GPU, or not told."""


class ModelManifest(_Strict):
    """The baseline's model; a hash is None where a server does not tell it."""

    name: str
    weights_sha256: str | None
    tokenizer_sha256: str | None
    provenance: dict[str, Any] = {}
    """Where the weights came from; `previous_quantization` tells that they were quantized before."""


class WorkloadManifest(_Strict):
    source: str
    source_sha256: str
    plan_sha256: str
    requests: int
    prompt_tokens: int
    output_tokens: int
    span_seconds: float
    blocks: int
    seed: int
    output_lengths: Literal["forced", "natural"]
    history: Literal["recorded", "live"]
    transforms: list[dict[str, Any]]
    load: str = "open loop"
    """Who decides when a request is sent, in words: its schedule, or the clients of a closed loop."""
    clients: int | None = None
    """Of a closed loop; None: open loop."""


class FidelityWindow(_Strict):
    window_seconds: int
    intended: list[int]
    delivered: list[int]
    max_difference: int


class PrefixSharing(_Strict):
    """Prompt tokens that a prefix cache could find, against those that the arm said it found.

    Both are of the same `requests`: those whose cached tokens the arm told, or all that it was sent where it told none.
    """

    block_tokens: int
    """Of a KV block; 16 where the arm does not tell."""
    cache_blocks: int | None
    """KV blocks that the cache holds; None: not told, the promise is that of an endless one."""
    enabled: bool | None
    """Whether prompts share blocks at all; None: not told."""
    requests: int
    prompt_tokens: int
    promised_tokens: int
    cached_tokens: int | None
    """None: the arm told it of no request."""


class RowsTouched(_Strict):
    """What one step between the recorded traffic and the plan did to its rows."""

    name: str
    rows_in: int
    rows_out: int
    rows_touched: int


class FidelityCertificate(_Strict):
    """Delivered against intended load of one arm; lags are milliseconds from the absolute schedule.

    In a closed loop, as `load` then says, a request is due when its client is free. The last two fields are None in
    certificates that were written before there were such; they have no say in `valid`.
    """

    arm_id: str
    load: str = "open loop"
    requests_intended: int
    requests_delivered: int
    lag_ms_p50: float
    lag_ms_p95: float
    lag_ms_p99: float
    lag_ms_max: float
    windows: list[FidelityWindow]
    driver_cpu_share: float | None
    valid: bool
    reasons: list[str]
    prefix_sharing: PrefixSharing | None = None
    """None also where nobody knows the prompts' tokens."""
    rows_touched: list[RowsTouched] | None = None


class Environment(_Strict):
    python: str
    platform: str
    cpu: str
    cores: int
    threads: int
    memory_bytes: int
    isa: list[str]
    device: str
    versions: dict[str, str]


class MeasuredLimits(_Strict):
    """The most that this device was measured to do (see `quantgate_kernels.roofline.DeviceLimits`)."""

    read_bytes_per_s: float = Field(gt=0)
    matmul_ops_per_s: float = Field(gt=0)
    int8_ops_per_s: float | None = Field(gt=0)
    float32_ops_per_s: float = Field(gt=0)
    threads: int
    measured_by: dict[str, str]


class RunManifest(_Strict):
    schema_: Literal["quantgate.run/1"] = Field(MANIFEST_SCHEMA, alias="schema")
    run_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """The folder's name; reports are named after it, so it leads nowhere else."""
    state: Literal["running", "complete", "interrupted", "failed"]
    phase: str
    """The last phase that was reached: load, replay, quality, judge, report, done.

    From judge on the run is complete: everything was measured, whatever befell its own verdict or report (`failure`).
    """
    created_utc: str
    finished_utc: str | None = None
    command: list[str]
    suite: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    engine: dict[str, Any] | None = None
    """The bundled engine's settings in a run without a suite, as `EngineSettings.as_recorded` tells them."""
    seed: int = Field(ge=0)
    model: ModelManifest
    arms: list[ArmManifest] = Field(min_length=1)
    workload: WorkloadManifest | None = None
    fidelity: list[FidelityCertificate] = []
    quality_items_sha256: str | None = None
    """Hash of the task items, texts and checkers that the arms were asked; None before the quality phase."""
    quality_tiers: list[TierStatus] = []
    """How far each quality tier was measured on each arm; empty for runs that measured none."""
    table_rows: dict[str, int] = {}
    """Rows of each table when all was measured; empty before."""
    environment: Environment
    device_limits: MeasuredLimits | None = None
    """Measured before the arms were loaded; None where none of them runs in this process, and in older runs."""
    process_peak_memory_bytes: int | None = None
    """Largest resident set of the process that held all in-process arms."""
    planted: dict[str, float] = {}
    """Weight noise planted on arms by the hidden test option (relative sigma by arm id); empty in honest runs."""
    failure: str | None = None

    @field_validator("arms")
    @classmethod
    def _ids_are_distinct(cls, arms: list[ArmManifest]) -> list[ArmManifest]:
        ids = [arm.arm_id for arm in arms]
        twice = [arm_id for arm_id in ids if ids.count(arm_id) > 1]
        if twice:
            raise ValueError(f"two arms are called {twice[0]!r}; expected an id of its own for each")
        return arms
