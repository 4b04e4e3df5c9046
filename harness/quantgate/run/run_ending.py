"""Whatever ends a run, its folder says so and its report shows how far it came."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from quantgate.report.render import render_report
from quantgate.run.recorder import RunRecorder
from quantgate.store.run_folder import load_run
from quantgate_engine.errors import QuantgateError


@contextmanager
def ended_truly(recorder: RunRecorder) -> Iterator[None]:
    """Marks the run interrupted or failed when the block is left by an exception, reports it, and lets it go on."""
    try:
        yield
    except KeyboardInterrupt:
        recorder.interrupted()
        _report_what_there_is(recorder)
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, QuantgateError) else f"{type(error).__name__}: {error}"
        # A full disk refuses this write too; the first error is the one to tell.
        with suppress(QuantgateError):
            recorder.failed(reason)
            _report_what_there_is(recorder)
        raise


def _report_what_there_is(recorder: RunRecorder) -> None:
    run = load_run(recorder.folder.path)
    recorder.folder.write_text("report.html", render_report(run, None))
