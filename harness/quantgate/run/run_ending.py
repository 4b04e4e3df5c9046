"""Whatever ends a run, its folder says so and its report shows how far it came."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from quantgate.progress import ProgressReporter
from quantgate.report.render import render_report
from quantgate.report.stored_verdict import read_verdict
from quantgate.run.recorder import RunRecorder
from quantgate.store.redaction import INTERRUPTED
from quantgate.store.run_folder import load_run, stored_rows
from quantgate_engine.errors import QuantgateError


@contextmanager
def ended_truly(recorder: RunRecorder, progress: ProgressReporter) -> Iterator[None]:
    """Around what is measured: an exception marks the run interrupted or failed, is reported, and goes on."""
    try:
        yield
    except BaseException as error:
        # A full disk may refuse these writes too; the first error is the one to tell.
        with suppress(QuantgateError):
            if isinstance(error, Exception):
                recorder.failed(_reason(error))
            else:
                recorder.interrupted()
        with suppress(QuantgateError):
            _report_what_there_is(recorder)
        recorder.close()
        progress.note(_what_is_kept(recorder))
        raise


@contextmanager
def measured_for_good(recorder: RunRecorder, progress: ProgressReporter, *, then: str) -> Iterator[None]:
    """Around the verdict and the report of a measured run: an exception costs them, not what was measured.

    then: the command that makes them from the run's folder.
    """
    try:
        yield
    except BaseException as error:
        with suppress(QuantgateError):
            recorder.left_unjudged(_reason(error) if isinstance(error, Exception) else INTERRUPTED)
        with suppress(QuantgateError):
            _report_what_there_is(recorder)
        progress.note(f"The run itself is complete; go on with: {then} {recorder.folder.path}")
        raise
    finally:
        recorder.close()


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, QuantgateError) else f"{type(error).__name__}: {error}"


def _what_is_kept(recorder: RunRecorder) -> str:
    path = recorder.folder.path
    if stored_rows(path).get("requests"):
        return f"What was measured so far is kept in {path}."
    return f"No request is kept; how the run ended is in {path}."


def _report_what_there_is(recorder: RunRecorder) -> None:
    path = recorder.folder.path
    recorder.folder.write_text("report.html", render_report(load_run(path), read_verdict(path)))
