"""The engine's settings, validated once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from quantgate_engine.argument_checks import is_finite
from quantgate_engine.device_name import DeviceName
from quantgate_engine.kv.settings import CacheSettings, KVDtypeName
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings
from quantgate_engine.setting_checks import require, require_at_least, require_name, require_type
from quantgate_engine.timeouts import TimeoutSettings
from quantgate_kernels.kernel_set_names import AUTO, KernelSetName

_GROUPS: dict[str, type] = {
    "batching": BatchingSettings,
    "admission": AdmissionSettings,
    "cache": CacheSettings,
    "preemption": PreemptionSettings,
    "timeouts": TimeoutSettings,
}


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one engine instance.

    max_active_requests: requests that hold KV at the same time.
    max_step_tokens: token budget of one step (decodes first, prefill chunks take the rest).
    block_size: token slots of one KV block.
    num_kv_blocks: blocks of the pool; None sizes it for `max_active_requests` full contexts of 2,048 tokens at most.
    kv_memory_share: of what weights and the largest step leave of a GPU's memory, the part that the pool takes where
        `num_kv_blocks` is None; None: as many blocks as on a CPU, where 0.9 of it hold them. See docs/gpu.md.
    max_context_tokens: longest prompt plus output, at most the model's limit; None takes that.
    device: `auto` takes a GPU where torch sees one; `cpu` and `cuda` ask for one. See docs/gpu.md.
    cuda_graphs: a GPU's decode steps are recorded when the model is loaded, and replayed.
    threads: compute threads; None leaves the library's default.
    max_overtakes: later requests that may be admitted before a waiting one that does not fit; then all wait for it.
    kernel_set: `auto` takes the fastest that runs here; `reference`, `cpu` and `triton` ask for one.
    deterministic: a request's tokens and log-probabilities depend neither on its batch mates nor on chunks, cache hits
        and preemptions. Slower; see docs/determinism.md.
    kv_dtype: `auto` keeps keys and values as the activations are; `int8` needs about half the bytes of 16 bits.
    batching, admission, cache, preemption, timeouts: see those classes.
    """

    max_active_requests: int = 16
    max_step_tokens: int = 256
    block_size: int = 16
    num_kv_blocks: int | None = None
    kv_memory_share: float | None = None
    max_context_tokens: int | None = None
    device: DeviceName = "auto"
    cuda_graphs: bool = True
    threads: int | None = None
    max_overtakes: int = 32
    kernel_set: KernelSetName = AUTO
    deterministic: bool = False
    kv_dtype: KVDtypeName = "auto"
    batching: BatchingSettings = field(default_factory=BatchingSettings)
    admission: AdmissionSettings = field(default_factory=AdmissionSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    preemption: PreemptionSettings = field(default_factory=PreemptionSettings)
    timeouts: TimeoutSettings = field(default_factory=TimeoutSettings)

    def __post_init__(self) -> None:
        for name in ("max_active_requests", "max_step_tokens", "block_size", "max_overtakes"):
            require_at_least(f"EngineConfig.{name}", getattr(self, name), 1)
        for name in ("num_kv_blocks", "max_context_tokens", "threads"):
            require_at_least(f"EngineConfig.{name}", getattr(self, name), 1, optional=True)
        share = self.kv_memory_share
        require(
            share is None or (is_finite(share) and 0 < share <= 1),
            "EngineConfig.kv_memory_share",
            share,
            "a share above 0 and up to 1, or None",
        )
        require_type("EngineConfig.cuda_graphs", self.cuda_graphs, bool)
        require_type("EngineConfig.deterministic", self.deterministic, bool)
        for name, group in _GROUPS.items():
            require_type(f"EngineConfig.{name}", getattr(self, name), group)
        require_name("EngineConfig.device", self.device, get_args(DeviceName))
        require_name("EngineConfig.kernel_set", self.kernel_set, get_args(KernelSetName))
        require_name("EngineConfig.kv_dtype", self.kv_dtype, get_args(KVDtypeName))
        require(
            self.max_step_tokens >= self.max_active_requests,
            "EngineConfig.max_step_tokens",
            self.max_step_tokens,
            f"at least max_active_requests ({self.max_active_requests}), because every active request needs one token "
            "of the budget to decode",
            beside=("max_active_requests",),
        )
        reserved = sum(slo_class.reserved_active for slo_class in self.batching.slo_classes)
        require(
            reserved <= self.max_active_requests,
            "EngineConfig.max_active_requests",
            self.max_active_requests,
            f"at least {reserved}, the places that the SLO classes reserve among the active requests",
            beside=("batching.slo_classes",),
        )
