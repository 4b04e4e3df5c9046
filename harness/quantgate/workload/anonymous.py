"""Takes everything out of a trace that people said, and leaves what an engine feels: lengths, times, shared starts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from quantgate.traces.prompt_blocks import PromptBlocks
from quantgate.traces.record import TraceRecord
from quantgate.traces.transform_record import TransformRecord
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate_engine.errors import ConfigurationError

KNOWN_CLASSES = frozenset({"interactive", "batch"})
KNOWN_TAGS = frozenset({"chat", "rag", "code", "tools"})


def anonymize(
    records: Sequence[TraceRecord], encoder: PromptEncoder, block_tokens: int, keep: Collection[str] = ()
) -> tuple[list[TraceRecord], TransformRecord]:
    """The records with blocks in place of prompts, times from 0, numbers in place of names, and no checkers.

    A text is told by blocks of `block_tokens` tokens of the encoder's tokenizer; blocks that the trace tells by itself
    keep their size. Classes and tags keep their names where these are the usual ones, or stand in `keep`.
    Nothing of the result depends on a text but how many tokens it has, and where it goes apart from earlier ones.
    Raises ConfigurationError where the trace tells texts and blocks of another size.
    """
    _require_one_size(records, block_tokens)
    numbered = PromptNumbers(block_tokens)
    requests, sessions = _NewNames("r"), _NewNames("s")
    classes = _NewNames("class-", KNOWN_CLASSES.union(keep))
    tags = _NewNames("tag-", KNOWN_TAGS.union(keep))
    first_ns = min((record.scheduled_ns for record in records), default=0)
    # Every field is named, so that a new one of the records stays out until somebody lets it in.
    written = [
        numbered.told(
            record,
            encoder,
            TraceRecord(
                request_id=requests.of(record.request_id),
                scheduled_ns=record.scheduled_ns - first_ns,
                max_tokens=record.max_tokens,
                slo_class=classes.of(record.slo_class),
                session_id=None if record.session_id is None else sessions.of(record.session_id),
                turn=record.turn,
                think_time_ns=record.think_time_ns,
                tags=tuple(tags.of(name) for name in record.tags),
                disconnect_after_tokens=record.disconnect_after_tokens,
                disconnect_after_ns=record.disconnect_after_ns,
                read_tokens_per_s=record.read_tokens_per_s,
                limit_tokens=record.limit_tokens,
            ),
        )
        for record in records
    ]
    counts = {
        "texts": sum(map(_has_tokens, records)),
        "unlike_blocks": numbered.blocks,
        "classes_renamed": classes.renamed,
        "tags_renamed": tags.renamed,
        "checkers_removed": sum(record.checker is not None for record in records),
    }
    return written, TransformRecord("anonymize", counts, len(records), len(written), len(records))


class PromptNumbers:
    """Numbers the blocks of prompts by their first appearance, each by all that stands in the prompt up to its end.

    The table of what was seen ends with this object. No key and no hash could be asked whether a guess was right, and
    the numbers would be the same for any other words that are shared in the same way.
    """

    def __init__(self, block_tokens: int) -> None:
        self._size = block_tokens
        self._numbers: dict[tuple[int, int | tuple[int, ...]], int] = {}

    @property
    def blocks(self) -> int:
        """Unlike blocks so far."""
        return len(self._numbers)

    def told(self, source: TraceRecord, encoder: PromptEncoder, written: TraceRecord) -> TraceRecord:
        """`written` with the length of the source's prompt and, where the source tells what it shares, its blocks."""
        if source.prompt_blocks is not None:
            blocks = PromptBlocks(self._of(source.prompt_blocks.ids), source.prompt_blocks.block_tokens)
            return replace(written, prompt_token_count=source.prompt_token_count, prompt_blocks=blocks)
        if not _has_tokens(source):
            return replace(written, prompt_token_count=source.prompt_token_count)
        tokens = encoder.encode(source)
        ids = self._of([tokens[place : place + self._size] for place in range(0, len(tokens), self._size)])
        return replace(written, prompt_token_count=len(tokens), prompt_blocks=PromptBlocks(ids, self._size))

    def _of(self, contents: Sequence[int | tuple[int, ...]]) -> tuple[int, ...]:
        numbers = []
        before = -1
        for content in contents:
            before = self._numbers.setdefault((before, content), len(self._numbers))
            numbers.append(before)
        return tuple(numbers)


class _NewNames:
    """A number for each name that is not to be kept, by first appearance."""

    def __init__(self, prefix: str, kept: Collection[str] = ()) -> None:
        self._prefix = prefix
        self._names = {name: name for name in kept}
        self._next = 1
        self.renamed = 0

    def of(self, name: str) -> str:
        if name not in self._names:
            self.renamed += 1
            while f"{self._prefix}{self._next}" in self._names:
                self._next += 1
            self._names[name] = f"{self._prefix}{self._next}"
            self._next += 1
        return self._names[name]


def _has_tokens(record: TraceRecord) -> bool:
    return record.has_text or record.prompt_token_ids is not None


def _require_one_size(records: Sequence[TraceRecord], block_tokens: int) -> None:
    told = {record.prompt_blocks.block_tokens for record in records if record.prompt_blocks is not None}
    others = told - {block_tokens}
    if others and any(map(_has_tokens, records)):
        raise ConfigurationError(
            f"The trace has texts, and prompts told by blocks of {min(others)} tokens, but texts were to be told by "
            f"blocks of {block_tokens}; give --block-tokens {min(others)}."
        )
