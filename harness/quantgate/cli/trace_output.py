"""The trace file that a command writes, and what it says of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate.traces.record import TraceRecord
    from quantgate.traces.transform_record import TransformRecord

SCHEMA = "quantgate.trace-written/1"


@dataclass(frozen=True, slots=True)
class OutputFlags:
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, in quantgate's own format.")]
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False

    def check(self, trace: Path) -> None:
        """Raises ConfigurationError, before a long trace is read, where the file cannot be written or may not be."""
        from quantgate.store.atomic_file import require_replaceable

        require_replaceable(self.out)
        if not self.out.parent.is_dir():
            raise ConfigurationError(
                f"--out is {self.out}, but {self.out.parent} is no folder; make it or choose another."
            )
        if not self.out.exists():
            return
        if trace.exists() and self.out.samefile(trace):
            raise ConfigurationError(f"--out is {self.out}, the trace itself; name another file.")
        if not self.force:
            raise ConfigurationError(f"--out is {self.out}, which is there already; name another file or add --force.")

    def write(self, records: Sequence[TraceRecord], steps: Sequence[TransformRecord]) -> None:
        """The file, and on standard output what it holds and what every step on the way did."""
        from quantgate.traces.native_writer import write_native

        write_native(self.out, records)
        span_s = (records[-1].scheduled_ns - records[0].scheduled_ns) / 1e9
        if self.json_output:
            document = {"schema": SCHEMA, "out": str(self.out), "rows": len(records), "span_s": span_s}
            typer.echo(json.dumps(document | {"steps": [asdict(step) for step in steps]}, indent=2))
            return
        from quantgate.cli.inspection_table import step_words
        from quantgate_engine.counted import counted

        lines = [f"{self.out}: {counted(len(records), 'row')} in {span_s:,.0f} s"]
        for line in [*lines, *(f"step {step.name}: {step_words(step)}" for step in steps)]:
            Console().print(line, markup=False, highlight=False, soft_wrap=True)
