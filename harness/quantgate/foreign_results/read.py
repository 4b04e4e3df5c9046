"""The front door: reads result files of other tools. A new format: its file, and a line in `FORMATS`."""

from __future__ import annotations

from pathlib import Path

from quantgate.foreign_results.aiperf_records import AIPERF_RECORDS
from quantgate.foreign_results.aiperf_summary import AIPERF_SUMMARY
from quantgate.foreign_results.documents import read_documents
from quantgate.foreign_results.guidellm import GUIDELLM
from quantgate.foreign_results.measured_result import MeasuredResult
from quantgate.foreign_results.result_format import ResultFormat
from quantgate.foreign_results.vllm_bench import VLLM_BENCH
from quantgate_engine.errors import ConfigurationError

# Records before the summary: where a folder holds both, single requests say more.
FORMATS: dict[str, ResultFormat] = {
    known.name: known for known in (GUIDELLM, AIPERF_RECORDS, AIPERF_SUMMARY, VLLM_BENCH)
}


def read_foreign_results(path: Path, format_name: str | None = None) -> list[MeasuredResult]:
    """The results in one file of another tool, or in the folder that the tool wrote; at least one.

    format_name: a name of `FORMATS`; None recognises the file by its content.
    Raises ConfigurationError for unknown, damaged or empty files, with file, line and field.
    """
    wanted = [_named(format_name)] if format_name is not None else list(FORMATS.values())
    file = _file_in(path, wanted) if path.is_dir() else path
    documents = read_documents(file)
    chosen = next((known for known in wanted if known.recognises(documents[0].content)), None)
    if chosen is None:
        expected = " or ".join(f"a {known.description} ({known.name})" for known in wanted)
        raise ConfigurationError(f"{file}: the format of this file is not recognised; expected {expected}.")
    results = chosen.read(documents, file)
    if not results:
        raise ConfigurationError(f"{file}: there is no result in this {chosen.description}; run the benchmark again.")
    return results


def _named(name: str) -> ResultFormat:
    if name not in FORMATS:
        raise ConfigurationError(
            f"--format is {name!r}; expected one of: {', '.join(FORMATS)} (run folders are recognised without it)."
        )
    return FORMATS[name]


def _file_in(folder: Path, formats: list[ResultFormat]) -> Path:
    names = [name for known in formats for name in known.file_names]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    expected = ", ".join(["run.json", *names])
    raise ConfigurationError(f"{folder}: this folder holds no results; expected one of the files {expected} in it.")
