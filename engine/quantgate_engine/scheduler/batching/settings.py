"""Settings of batching: which requests share a step, and how much of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from quantgate_engine.scheduler.slo_class import BATCH, INTERACTIVE, SLOClass
from quantgate_engine.setting_checks import require, require_at_least, require_distinct, require_name, require_type

BatchModeName = Literal["mixed", "split", "static"]


@dataclass(frozen=True, slots=True)
class BatchingSettings:
    """What a step is made of.

    mode: `mixed`: decodes and prefill chunks in one step; `split`: a step is all prefill or all decode; `static`: a
    batch is filled, runs to the end of its longest request, and only then the next one starts.
    chunked_prefill: whether a prompt may be cut to what is left of the step's budget; off: it goes in one piece.
    max_chunk_tokens: most tokens of one prompt in one step; None: the budget.
    length_buckets: the longest prompt of each bucket but the last, which takes what is longer. Within a class, shorter
    buckets go first.
    max_partial_prefills: prompts that may be in the middle of being computed at once; None: any number.
    long_prefill_tokens, max_long_prefills: how long a prompt is to count as long, and how many of those may be computed
    at once; None: any number.
    slo_classes: the most urgent first; that one is also the class of requests that name none.
    """

    mode: BatchModeName = "mixed"
    chunked_prefill: bool = True
    max_chunk_tokens: int | None = None
    length_buckets: tuple[int, ...] = (512, 2048, 8192)
    max_partial_prefills: int | None = None
    long_prefill_tokens: int = 2048
    max_long_prefills: int | None = None
    slo_classes: tuple[SLOClass, ...] = (INTERACTIVE, BATCH)

    def __post_init__(self) -> None:
        require_name("BatchingSettings.mode", self.mode, get_args(BatchModeName))
        require_type("BatchingSettings.chunked_prefill", self.chunked_prefill, bool)
        for field in ("max_chunk_tokens", "max_partial_prefills", "max_long_prefills"):
            require_at_least(f"BatchingSettings.{field}", getattr(self, field), 1, optional=True)
        require_at_least("BatchingSettings.long_prefill_tokens", self.long_prefill_tokens, 1)
        require_type("BatchingSettings.length_buckets", self.length_buckets, tuple)
        for place, length in enumerate(self.length_buckets):
            require_at_least(f"BatchingSettings.length_buckets.{place}", length, 1)
        rising = list(self.length_buckets) == sorted(set(self.length_buckets))
        require(
            rising,
            "BatchingSettings.length_buckets",
            self.length_buckets,
            "rising lengths from 1 on, or none",
        )
        require_type("BatchingSettings.slo_classes", self.slo_classes, tuple)
        for place, slo_class in enumerate(self.slo_classes):
            require_type(f"BatchingSettings.slo_classes.{place}", slo_class, SLOClass)
        require(bool(self.slo_classes), "BatchingSettings.slo_classes", self.slo_classes, "at least one class")
        require_distinct("BatchingSettings.slo_classes", self.class_names)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the SLO classes, the most urgent first."""
        return tuple(slo_class.name for slo_class in self.slo_classes)
