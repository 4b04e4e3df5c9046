"""The groups of one engine's settings; defaults are the engine's own."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import Field

from quantgate.engine_settings.group import Group
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.scheduler.admission.settings import AdmissionSettings, EstimatorName, OverCapName
from quantgate_engine.scheduler.batching.settings import BatchingSettings, BatchModeName
from quantgate_engine.scheduler.preemption.settings import PreemptionModeName, PreemptionSettings, VictimPolicyName
from quantgate_engine.scheduler.slo_class import SLOClass
from quantgate_engine.timeouts import TimeoutSettings

_BATCHING = BatchingSettings()
_ADMISSION = AdmissionSettings()
_CACHE = CacheSettings()
_PREEMPTION = PreemptionSettings()
_TIMEOUTS = TimeoutSettings()
_PLAIN_CLASS = SLOClass("plain")


class SLOClassEntry(Group):
    """See `quantgate_engine.scheduler.slo_class.SLOClass`."""

    made_into = SLOClass

    name: str
    max_wait_s: float | None = _PLAIN_CLASS.max_wait_s
    max_prefills: int | None = _PLAIN_CLASS.max_prefills
    reserved_active: int = _PLAIN_CLASS.reserved_active


class BatchingGroup(Group):
    """See `quantgate_engine.scheduler.batching.settings.BatchingSettings`."""

    made_into = BatchingSettings

    mode: BatchModeName = _BATCHING.mode
    chunked_prefill: bool = _BATCHING.chunked_prefill
    max_chunk_tokens: int | None = _BATCHING.max_chunk_tokens
    # YAML knows lists only: a tuple is asked for less strictly than the values in it.
    length_buckets: tuple[int, ...] = Field(_BATCHING.length_buckets, strict=False)
    max_partial_prefills: int | None = _BATCHING.max_partial_prefills
    long_prefill_tokens: int = _BATCHING.long_prefill_tokens
    max_long_prefills: int | None = _BATCHING.max_long_prefills
    slo_classes: tuple[SLOClassEntry, ...] = Field(
        tuple(SLOClassEntry(**asdict(slo_class)) for slo_class in _BATCHING.slo_classes), strict=False
    )


class AdmissionGroup(Group):
    """See `quantgate_engine.scheduler.admission.settings.AdmissionSettings`."""

    made_into = AdmissionSettings

    estimator: EstimatorName = _ADMISSION.estimator
    over_cap: OverCapName = _ADMISSION.over_cap
    max_kv_tokens: int | None = _ADMISSION.max_kv_tokens
    max_wait_s: float | None = _ADMISSION.max_wait_s
    min_output_tokens: int = _ADMISSION.min_output_tokens
    watermark: float = _ADMISSION.watermark
    past_answers: int = _ADMISSION.past_answers
    past_quantile: float = _ADMISSION.past_quantile


class CacheGroup(Group):
    """See `quantgate_engine.kv.settings.CacheSettings`."""

    made_into = CacheSettings

    prefix_sharing: bool = _CACHE.prefix_sharing
    session_seconds: float = _CACHE.session_seconds
    session_blocks: int = _CACHE.session_blocks


class PreemptionGroup(Group):
    """See `quantgate_engine.scheduler.preemption.settings.PreemptionSettings`."""

    made_into = PreemptionSettings

    mode: PreemptionModeName = _PREEMPTION.mode
    victim: VictimPolicyName = _PREEMPTION.victim
    host_blocks: int = _PREEMPTION.host_blocks
    max_preemptions: int = _PREEMPTION.max_preemptions


class TimeoutsGroup(Group):
    """See `quantgate_engine.timeouts.TimeoutSettings`."""

    made_into = TimeoutSettings

    request_s: float | None = _TIMEOUTS.request_s
    drain_s: float | None = _TIMEOUTS.drain_s
