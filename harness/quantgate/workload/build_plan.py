"""Makes the plan that every arm replays out of a trace's records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from quantgate.traces.record import TraceRecord
from quantgate.traces.transform_record import TransformRecord
from quantgate.workload.blocks import assign_blocks
from quantgate.workload.plan import PlannedRequest, ReplayPlan
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.tokenizer import Tokenizer
from quantgate.workload.transforms import Transform, TransformContext
from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError

OutputLengths = Literal["forced", "natural"]


def apply_transforms(
    records: Sequence[TraceRecord], transforms: Sequence[Transform], context: TransformContext
) -> tuple[list[TraceRecord], tuple[TransformRecord, ...]]:
    """Runs the transforms in order and records what each did. Raises ConfigurationError where one leaves no row."""
    current = list(records)
    history = []
    for transform in transforms:
        result = transform.apply(current, context)
        history.append(
            TransformRecord(
                name=transform.kind,
                parameters=transform.model_dump(mode="json", exclude={"kind"}) | result.details,
                rows_in=len(current),
                rows_out=len(result.records),
                rows_touched=result.rows_touched,
            )
        )
        current = result.records
        if not current:
            settings = ", ".join(f"{name}={value}" for name, value in transform if name != "kind")
            raise ConfigurationError(
                f"The transform {transform.kind} ({settings}) leaves none of "
                f"{counted(history[-1].rows_in, 'request')}; "
                "widen its settings."
            )
    return current, tuple(history)


def build_plan(
    records: Sequence[TraceRecord],
    tokenizer: Tokenizer | None,
    *,
    source: str,
    source_sha256: str,
    transforms: Sequence[Transform] = (),
    import_steps: Sequence[TransformRecord] = (),
    seed: int = 0,
    blocks: int = 1,
    output_lengths: OutputLengths = "forced",
    max_context_tokens: int | None = None,
) -> ReplayPlan:
    """The plan: transformed records with their prompts as token ids, in order of schedule, split into blocks.

    tokenizer: None where nobody knows the arms'; then texts stay texts, and lengths are those that the trace counted.
    source: what the plan calls its trace (a name, not a path of this machine). import_steps: what reading the trace did
    to its rows; they stand before the transforms in the plan. blocks: counterbalanced blocks of about equal numbers of
    requests; no session lies astride two. output_lengths: `forced` decodes exactly `max_tokens` tokens (end-of-sequence
    ignored), `natural` stops where the model does, at the latest at the request's limit or at the end of the context.
    max_context_tokens: the shortest context among the arms; None checks nothing.
    Raises ConfigurationError for an empty workload and for requests that do not fit the context.
    """
    if not records:
        raise ConfigurationError(f"The trace {source} holds no requests; expected at least one.")
    encoder = PromptEncoder(tokenizer, seed)
    kept, history = apply_transforms(records, transforms, TransformContext(encoder, seed))
    kept.sort(key=lambda record: record.scheduled_ns)
    if max_context_tokens is not None:
        check_context(kept, encoder, max_context_tokens, source)
    requests = tuple(
        _planned(
            record,
            encoder.encode(record),
            block,
            output_tokens=record.max_tokens
            if output_lengths == "forced"
            else _natural_limit(record, encoder, max_context_tokens),
            ignore_eos=output_lengths == "forced",
        )
        for record, block in zip(kept, assign_blocks(kept, blocks), strict=True)
    )
    return ReplayPlan(requests, source, source_sha256, (*import_steps, *history), seed)


def _natural_limit(record: TraceRecord, encoder: PromptEncoder, max_context_tokens: int | None) -> int:
    """The most tokens that the request allows itself and the context leaves it, but never less than it had."""
    limit = record.limit_tokens or record.max_tokens
    prompt_tokens = encoder.known_count(record)
    if max_context_tokens is not None and prompt_tokens is not None:
        limit = min(limit, max_context_tokens - prompt_tokens)
    return max(limit, record.max_tokens)


def _planned(
    record: TraceRecord, prompt: tuple[int, ...], block: int, *, output_tokens: int, ignore_eos: bool
) -> PlannedRequest:
    return PlannedRequest(
        request_id=record.request_id,
        scheduled_ns=record.scheduled_ns,
        prompt_token_ids=prompt,
        output_tokens=output_tokens,
        ignore_eos=ignore_eos,
        slo_class=record.slo_class,
        session_id=record.session_id,
        turn=record.turn,
        think_time_ns=record.think_time_ns,
        tags=record.tags,
        checker=record.checker,
        disconnect_after_tokens=record.disconnect_after_tokens,
        disconnect_after_ns=record.disconnect_after_ns,
        read_tokens_per_s=record.read_tokens_per_s,
        block_index=block,
        messages=record.messages,
        prompt_text=record.prompt_text,
        prompt_token_count=record.prompt_token_count,
    )


def check_context(records: Sequence[TraceRecord], encoder: PromptEncoder, limit: int, source: str) -> None:
    """Raises ConfigurationError where prompt and output of a request exceed the context.

    Runs before stand-in prompts are drawn: a trace may name lengths that no memory holds. Prompts
    whose length nobody knows are left to the server, which refuses what does not fit.
    """
    counts = [(encoder.known_count(record), record) for record in records]
    needed = [(count + record.max_tokens, count, record) for count, record in counts if count is not None]
    too_long = [entry for entry in needed if entry[0] > limit]
    if not too_long:
        return
    _, prompt_tokens, worst = max(too_long, key=lambda entry: entry[0])
    raise ConfigurationError(
        f"{source}: {len(too_long)} of {len(records)} requests do not fit the context of {counted(limit, 'token')} "
        f"(the longest, {worst.request_id}, needs {prompt_tokens} prompt + "
        f"{counted(worst.max_tokens, 'output token')}); limit them with --max-prompt-tokens, --max-output-tokens and "
        "--clip-policy drop or cut, or with a clip transform in the suite."
    )
