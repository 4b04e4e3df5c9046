"""Result files of other tools: what each number means here, and what a damaged file is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.foreign_results.result_files import (
    DETAILED_VLLM,
    aiperf_record,
    aiperf_summary,
    guidellm_report,
    vllm_result,
)

from quantgate.foreign_results.measured_result import MeasuredResult
from quantgate.foreign_results.read import FORMATS, read_foreign_results
from quantgate_engine.errors import ConfigurationError


def read_one(folder: Path, *documents: dict[str, Any], name: str = "result.json") -> MeasuredResult:
    (result,) = read_all(folder, *documents, name=name)
    return result


def read_all(folder: Path, *documents: dict[str, Any], name: str = "result.json") -> list[MeasuredResult]:
    path = folder / name
    path.write_text("\n".join(json.dumps(document) for document in documents))
    return read_foreign_results(path)


def percentiles(result: MeasuredResult, time: str) -> dict[str, float]:
    return {name: found.value for name, found in result.times[time].percentiles.items()}


def test_a_report_of_guidellm(tmp_path: Path) -> None:
    result = read_one(tmp_path, guidellm_report())
    assert (result.tool, result.model, result.label) == ("guidellm", "llama", "result constant 2/s")
    assert (result.finished, result.failed, result.seconds) == (400, 3, 200.0)
    assert percentiles(result, "ttft_from_sent_ms") == {"p50": 110.0, "p95": 200.0, "p99": 300.0}
    # Latencies are in seconds there, and what it calls inter-token latency is a mean per request.
    assert percentiles(result, "e2e_from_sent_ms") == pytest.approx({"p50": 1400.0, "p95": 2500.0, "p99": 3500.0})
    assert result.times["tpot_ms"].mean == 11.0
    assert "itl_ms" not in result.times
    assert {name: rate.value for name, rate in result.rates.items()} == {
        "requests_per_s": 2.0,
        "output_tokens_per_s": 256.0,
    }
    assert result.notes == ("Requests cut off at the end of the benchmark, which stand in no figure: 2.",)


def test_single_requests_of_guidellm_are_weighted_alike(tmp_path: Path) -> None:
    requests = [
        {"time_to_first_token_ms": 100.0 + n, "inter_token_latency_ms": 10.0 if n else None, "request_latency": 1.0}
        for n in range(8)
    ]
    result = read_one(tmp_path, guidellm_report(requests, successful=8))
    assert result.times["ttft_from_sent_ms"].mean == pytest.approx(103.5)
    assert percentiles(result, "ttft_from_sent_ms") == {"p50": 103.0}
    assert (result.times["tpot_ms"].n, result.times["tpot_ms"].mean) == (7, 10.0)
    assert "weighted" not in result.times["tpot_ms"].definition


def test_summaries_of_guidellm_stand_where_the_file_keeps_a_part_of_the_requests(tmp_path: Path) -> None:
    result = read_one(tmp_path, guidellm_report([{"time_to_first_token_ms": 5.0}], successful=400))
    assert result.times["ttft_from_sent_ms"].mean == 120.0
    assert "weighted by its tokens" in result.times["tpot_ms"].definition
    # 400 requests carry p99; the tokens behind the weighted summary are not what n counts.
    assert result.times["tpot_ms"].n == 400


def test_a_summary_of_vllm_marks_percentiles_that_so_few_requests_do_not_carry(tmp_path: Path) -> None:
    result = read_one(tmp_path, vllm_result())
    assert (result.tool, result.model, result.finished, result.failed, result.seconds) == (
        "vllm",
        "llama",
        100,
        2,
        50.0,
    )
    ttft = result.times["ttft_from_sent_ms"]
    assert {name: (found.value, found.carried) for name, found in ttft.percentiles.items()} == {
        "p50": (110.0, True),
        "p99": (300.0, False),
    }
    assert result.times["itl_ms"].mean == 11.5
    assert "e2e_from_sent_ms" not in result.times
    assert "goodput_rps" not in result.rates


def test_single_requests_of_vllm_leave_failed_ones_out(tmp_path: Path) -> None:
    result = read_one(tmp_path, vllm_result(**DETAILED_VLLM))
    # By hand: ends at 0.14 and 0.22 s; (0.14 - 0.10) / 2 and (0.22 - 0.20) / 1 a token.
    assert result.times["ttft_from_sent_ms"].mean == pytest.approx(150.0)
    assert result.times["e2e_from_sent_ms"].mean == pytest.approx(180.0)
    assert result.times["tpot_ms"].mean == pytest.approx(20.0)
    assert (result.times["itl_ms"].n, result.times["itl_ms"].mean) == (3, pytest.approx(20.0))
    # Two requests carry no percentile at all.
    assert result.times["ttft_from_sent_ms"].percentiles == {}


def test_latencies_of_vllm_are_preferred_to_sums_of_gaps(tmp_path: Path) -> None:
    result = read_one(tmp_path, vllm_result(**DETAILED_VLLM, latencies=[0.16, 0.24, 0.0]))
    assert result.times["e2e_from_sent_ms"].mean == pytest.approx(200.0)
    assert result.times["tpot_ms"].mean == pytest.approx(35.0)


@pytest.mark.parametrize("key", ["request_goodput", "request_goodput:"])
def test_both_spellings_of_vllms_goodput(tmp_path: Path, key: str) -> None:
    document = vllm_result()
    del document["request_goodput"]
    assert read_one(tmp_path, document | {key: 1.5}).rates["goodput_rps"].value == 1.5


def test_older_results_of_vllm_tell_failures_by_the_number_of_prompts(tmp_path: Path) -> None:
    document = vllm_result(num_prompts=110)
    del document["failed"]
    assert read_one(tmp_path, document).failed == 10


def test_several_results_in_one_file_of_vllm(tmp_path: Path) -> None:
    results = read_all(tmp_path, vllm_result(), vllm_result(completed=90))
    assert [(result.label, result.finished) for result in results] == [("result 1", 100), ("result 2", 90)]


def test_a_limit_on_open_requests_hides_waiting_and_is_told(tmp_path: Path) -> None:
    assert "At most 8 requests" in read_one(tmp_path, vllm_result(max_concurrency=8, request_rate=10.0)).notes[0]
    assert read_one(tmp_path, vllm_result(max_concurrency=8, request_rate="inf")).notes == ()


def test_a_summary_of_aiperf(tmp_path: Path) -> None:
    nanoseconds = {"unit": "ns", "avg": 1.2e8, "p50": 1.1e8, "count": 100}
    result = read_one(tmp_path, aiperf_summary(time_to_first_token=nanoseconds), name="profile_export_aiperf.json")
    assert (result.tool, result.label, result.finished, result.failed) == ("aiperf", tmp_path.name, 100, 2)
    assert result.seconds == 50.0
    assert result.times["ttft_from_sent_ms"].mean == pytest.approx(120.0)
    assert percentiles(result, "ttft_from_sent_ms") == pytest.approx({"p50": 110.0})
    assert result.times["tpot_ms"].n == 98
    assert result.rates["goodput_rps"].value == 1.75


def test_absent_errors_of_aiperf_are_none_only_where_its_list_is_empty(tmp_path: Path) -> None:
    document = aiperf_summary(error_summary=[])
    del document["error_request_count"]
    assert read_one(tmp_path, document).failed == 0
    assert read_one(tmp_path, document | {"error_summary": None}).failed is None


def test_records_of_aiperf(tmp_path: Path) -> None:
    records = [
        aiperf_record(-5.0, 9000.0, [1.0], benchmark_phase="warmup"),
        aiperf_record(0.0, 100.0, [10.0, 30.0], good=1),
        aiperf_record(1.0, 200.0, [20.0], good=0),
        aiperf_record(1.5, 50.0, [10.0]) | {"error": {"code": 500, "type": "HTTPError", "message": "no"}},
        aiperf_record(1.6, 50.0, [10.0], was_cancelled=True) | {"error": {"code": 499}},
    ]
    result = read_one(tmp_path, *records, name="records.jsonl")
    assert (result.finished, result.failed, result.label) == (2, 1, "records")
    assert result.seconds == pytest.approx(1.22)
    assert result.times["ttft_from_sent_ms"].mean == pytest.approx(150.0)
    assert result.times["tpot_ms"].mean == pytest.approx(20.0)
    assert (result.times["itl_ms"].n, result.times["itl_ms"].mean) == (3, pytest.approx(20.0))
    assert result.times["e2e_from_sent_ms"].mean == pytest.approx(180.0)
    assert result.rates["output_tokens_per_s"].value == pytest.approx(5 / 1.22)
    assert result.rates["goodput_rps"].value == pytest.approx(1 / 1.22)
    assert result.notes == ("Cancelled requests, which stand in no figure: 1.",)


def test_a_folder_is_read_by_the_names_that_tools_give_their_files(tmp_path: Path) -> None:
    (tmp_path / "profile_export_aiperf.json").write_text(json.dumps(aiperf_summary()))
    assert read_foreign_results(tmp_path)[0].finished == 100
    (tmp_path / "profile_export.jsonl").write_text(json.dumps(aiperf_record(0.0, 100.0, [10.0])))
    assert read_foreign_results(tmp_path)[0].finished == 1
    assert read_foreign_results(tmp_path, "aiperf")[0].finished == 100


def test_null_is_unknown_and_a_field_that_is_not_read_may_be_anything(tmp_path: Path) -> None:
    tpot = read_one(tmp_path, vllm_result(mean_tpot_ms=None, median_tpot_ms=None, std_tpot_ms=float("nan"))).times
    assert tpot["tpot_ms"].mean is None
    assert list(tpot["tpot_ms"].percentiles) == ["p99"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "r.json: the file is empty; expected the JSON results of a load test."),
        ("{\n  'a': 1}", "r.json, line 2, column 3: not valid JSON (Expecting property name"),
        ('{"a": 1}\n{"a": }\n', "r.json, line 2, column 7: not valid JSON (Expecting value)"),
        ("[1]", "r.json: expected a JSON object with results, got a list."),
        ('"x"', "r.json: expected a JSON object with results, got text."),
        ("1.5", "r.json: expected a JSON object with results, got a number."),
        ('{"a": 1}', "r.json: the format of this file is not recognised; expected a report of guidellm"),
        ('{"benchmarks": [{"stats": {}}]}', "r.json: the format of this file is not recognised"),
        ('{"benchmarks": []}', "r.json: there is no result in this report of guidellm, JSON; run the benchmark again."),
        (
            '{"benchmarks": [{"metrics": {"request_latency": {"successful": {"mean": "fast"}}}}]}',
            "r.json, field benchmarks.0.metrics.request_latency.successful.mean: expected a number, got 'fast'.",
        ),
        (
            json.dumps(vllm_result(completed="many")),
            "r.json, field completed: expected an integer, got 'many'.",
        ),
        (
            json.dumps(vllm_result(p99_itl_ms="x")),
            "r.json, field p99_itl_ms: expected a time of at least 0 ms, got 'x'.",
        ),
        (
            json.dumps(vllm_result(mean_ttft_ms=float("nan"))),
            "r.json, field mean_ttft_ms: expected a time of at least 0 ms, got nan.",
        ),
        (
            json.dumps(vllm_result(request_throughput=float("inf"))),
            "r.json, field request_throughput: expected a finite number, got inf.",
        ),
        (
            json.dumps(vllm_result(**DETAILED_VLLM | {"ttfts": [-0.1, 0.1, 0.1]})),
            "r.json, field ttfts.0: expected a value of at least 0, got -0.1.",
        ),
        (json.dumps(vllm_result(failed=-2)), "r.json, field failed: expected a value of at least 0, got -2."),
        (
            json.dumps(aiperf_summary(request_throughput={"unit": "requests/sec", "avg": -1.0})),
            "r.json, field request_throughput.avg: expected a value of at least 0, got -1.0.",
        ),
        (
            '{"benchmarks": [{"metrics": {"request_latency": {"successful": {"mean": NaN}}}}]}',
            "r.json, field benchmarks.0.metrics.request_latency.successful.mean: expected a finite number, got nan.",
        ),
        (
            json.dumps(vllm_result(**DETAILED_VLLM | {"itls": [[0.1]]})),
            "r.json, field itls: expected 3 entries, as many as ttfts has, got 1; the file is damaged, save it again.",
        ),
        (
            json.dumps(aiperf_summary(request_latency={"unit": "weeks", "avg": 1.0})),
            "r.json, field request_latency.unit: expected 'ns', 'us', 'ms', 'sec' or 's', got 'weeks'.",
        ),
        (
            json.dumps(aiperf_record(0.0, 1.0, [])) + "\n" + json.dumps({"metadata": {"request_start_ns": 1}}),
            "r.json, line 2, field metadata.request_end_ns: this key is missing; add it.",
        ),
        (
            json.dumps(aiperf_record(0.0, 1.0, [], benchmark_phase="warmup")),
            "r.json: no record is of the phase profiling (1 of the warm-up); run the benchmark again.",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.json").write_text(content)
    with pytest.raises(ConfigurationError) as caught:
        read_foreign_results(Path("r.json"))
    assert str(caught.value).startswith(sentence)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no such file or run folder"):
        read_foreign_results(tmp_path / "missing.json")
    with pytest.raises(ConfigurationError, match=r"holds no results; expected one of the files run\.json, benchmarks"):
        read_foreign_results(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="byte 0 is not UTF-8"):
        read_foreign_results(tmp_path / "binary")
    (tmp_path / "deep").write_text("[" * 200_000)
    with pytest.raises(ConfigurationError, match=r"nested too deeply|not valid JSON"):
        read_foreign_results(tmp_path / "deep")


def test_a_format_that_is_asked_for_must_be_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(vllm_result()))
    assert read_foreign_results(path, "vllm")[0].finished == 100
    with pytest.raises(ConfigurationError, match=r"not recognised; expected a report of guidellm, JSON \(guidellm\)\."):
        read_foreign_results(path, "guidellm")
    with pytest.raises(ConfigurationError, match="--format is 'sglang'; expected one of: guidellm, aiperf-records"):
        read_foreign_results(path, "sglang")


def test_every_format_is_told_apart_from_every_other() -> None:
    firsts = {
        "guidellm": guidellm_report(),
        "aiperf-records": aiperf_record(0.0, 1.0, []),
        "aiperf": aiperf_summary(),
        "vllm": vllm_result(),
    }
    assert firsts.keys() == FORMATS.keys()
    for name, first in firsts.items():
        assert [known.name for known in FORMATS.values() if known.recognises(first)] == [name]
