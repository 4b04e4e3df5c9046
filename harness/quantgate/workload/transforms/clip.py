"""Fits a trace into a model's context: drops or cuts the requests that are too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from quantgate.traces.record import TraceRecord
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed
from quantgate.workload.transforms.sessions import unit_key
from quantgate_engine.errors import ConfigurationError


class Clip(Transform):
    """Limits on prompt and output tokens; `policy` says what becomes of a request above one of them.

    drop: the request leaves, and with it the later turns of its session (their history holds its answer).
    cut: the prompt keeps its last tokens (where the question and the start of the answer stand), a prompt without text
    its first (where what it shares with others stands), the output its first.
    A request that allowed itself more output than the limit, without using it, is allowed the limit under both.
    """

    kind: Literal["clip"] = "clip"
    max_prompt_tokens: int | None = Field(None, ge=1, description="longest prompt, in tokens")
    max_output_tokens: int | None = Field(None, ge=1, description="longest output, in tokens")
    policy: Literal["drop", "cut"] = "drop"

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.max_prompt_tokens is None and self.max_output_tokens is None:
            raise ValueError(
                "a clip without a limit changes nothing; give max_prompt_tokens, max_output_tokens or both"
            )
        return self

    @override
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        kept = self._cut(records, context) if self.policy == "cut" else self._drop(records, context)
        kept = [self._with_lower_limit(record) for record in kept]
        untouched = {id(record) for record in kept} & {id(record) for record in records}
        return Transformed(kept, len(records) - len(untouched))

    def _drop(self, records: Sequence[TraceRecord], context: TransformContext) -> list[TraceRecord]:
        ended: set[tuple[str, str]] = set()
        kept = []
        for record in records:
            if self._prompt_too_long(record, context) or self._output_too_long(record):
                ended.add(unit_key(record))
            if unit_key(record) not in ended:
                kept.append(record)
        return kept

    def _cut(self, records: Sequence[TraceRecord], context: TransformContext) -> list[TraceRecord]:
        kept = []
        for record in records:
            if self._prompt_too_long(record, context):
                record = self._with_shorter_prompt(record, context)
            if self.max_output_tokens is not None and self._output_too_long(record):
                record = replace(record, max_tokens=self.max_output_tokens)
            kept.append(record)
        return kept

    def _with_shorter_prompt(self, record: TraceRecord, context: TransformContext) -> TraceRecord:
        assert self.max_prompt_tokens is not None
        if not record.has_text and record.prompt_token_ids is None:
            blocks = record.prompt_blocks and record.prompt_blocks.of_first(self.max_prompt_tokens)
            return replace(record, prompt_token_count=self.max_prompt_tokens, prompt_blocks=blocks)
        if record.has_text and not context.encoder.has_tokenizer:
            raise ConfigurationError(
                f"Request {record.request_id}: its prompt cannot be cut to {self.max_prompt_tokens} tokens without a "
                "tokenizer; give one with --tokenizer NAME, or drop long requests with --clip-policy drop."
            )
        last_tokens = context.encoder.encode(record)[-self.max_prompt_tokens :]
        return replace(record, messages=None, prompt_text=None, prompt_token_ids=last_tokens, prompt_token_count=None)

    def _with_lower_limit(self, record: TraceRecord) -> TraceRecord:
        if self.max_output_tokens is None or (record.limit_tokens or 0) <= self.max_output_tokens:
            return record
        return replace(record, limit_tokens=self.max_output_tokens)

    def _prompt_too_long(self, record: TraceRecord, context: TransformContext) -> bool:
        return self.max_prompt_tokens is not None and context.encoder.count(record) > self.max_prompt_tokens

    def _output_too_long(self, record: TraceRecord) -> bool:
        return self.max_output_tokens is not None and record.max_tokens > self.max_output_tokens
