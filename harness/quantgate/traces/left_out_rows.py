"""Counts the rows of a trace that are no traffic to replay, or refuses the file for the first one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.transform_record import TransformRecord
from quantgate_engine.errors import ConfigurationError


def without_prompt(field: str) -> RowLeftOutError:
    return RowLeftOutError("without_prompt", f"field {field}: expected a prompt of at least one token, got 0")


def without_answer(field: str) -> RowLeftOutError:
    return RowLeftOutError("empty_answer", f"field {field}: expected an answer of at least one token, got 0")


def nothing_left(source: str, kinds: Mapping[str, int], first: str, called: str = "rows") -> ConfigurationError:
    """The error for a file of which every row was left out. first: where the first one is, and why."""
    counts = ", ".join(f"{kind.replace('_', ' ')}: {count}" for kind, count in sorted(kinds.items()))
    total = sum(kinds.values())
    return ConfigurationError(
        f"{source}: none of its {total} {called} can be replayed ({counts}); the first one, {first}."
    )


class LeftOutRows:
    """The rows of one file that were left out so far, by kind."""

    def __init__(self, source: str, *, strict: bool) -> None:
        self._source = source
        self._strict = strict
        self._counts: Counter[str] = Counter()
        self._first = ""

    def add(self, line: int, left_out: RowLeftOutError) -> None:
        """Raises ConfigurationError where the file is read strictly."""
        if self._strict:
            raise ConfigurationError(
                f"{self._source}, line {line}, {left_out.reason}; mend or remove the row, or read the trace without "
                "strict."
            )
        self._first = self._first or f"line {line}, {left_out.reason}"
        self._counts[left_out.kind] += 1

    def step(self, kept: int, counts: Mapping[str, int]) -> TransformRecord:
        """What reading did to the file's rows; `counts`: what the reader counted besides.

        Raises ConfigurationError where rows were left out and none was kept.
        """
        total = kept + self._counts.total()
        if total and not kept:
            raise nothing_left(self._source, self._counts, self._first)
        return TransformRecord("read trace", {"left_out": dict(self._counts), **counts}, total, kept, total - kept)
