"""`quantgate trace anonymize`: no eight characters of the source are in the file, and a replay of it is as heavy.

The file has words of its own: the names of fields, of the usual classes and of the usual tags. They are taken out
before the search, because a text may hold them too. All else of the file is searched, numbers included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_trace_import import NOON, printed, refusal
from tests.traffic.log_files import chat_row, write_log

from quantgate.traces.native_row import NativeRow
from quantgate.traces.promised_sharing import promised_sharing
from quantgate.traces.prompt_blocks import PromptBlocks
from quantgate.traces.reader import read_trace
from quantgate.traces.record import TraceRecord
from quantgate.workload.anonymous import KNOWN_CLASSES, KNOWN_TAGS
from quantgate.workload.build_plan import build_plan
from quantgate.workload.plan import ReplayPlan
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate_engine.model.tokenizer import load_tokenizer

MODEL = "smollm2-135m-instruct"
QUICK = Path(__file__).parents[2] / "replay_samples" / "quick.jsonl"
OWN_WORDS = {*(field.alias or name for name, field in NativeRow.model_fields.items()), *KNOWN_CLASSES, *KNOWN_TAGS}
SECRETS = [
    "My name is Wilhelmina Oberhuber, my number is 0171 4455667 and my card is 4111 1111 1111 1111.",
    'Write "prompt_tokens" in JSON, then "max_tokens":3,"tags" and 1,2,3,4,5,6,7.',
    "Größenwahn und Ärger über die Straßenbahn",
]


def anonymized(trace: Path, out: Path, *flags: str) -> Path:
    printed("anonymize", trace, "--tokenizer", MODEL, "--out", out, *flags)
    return out


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_in(inner)


def found_of_the_source(source: Path, out: Path, length: int = 8) -> set[str]:
    """Stretches of the source's texts that stand in the file."""
    file = out.read_text(encoding="utf-8")
    for word in sorted(OWN_WORDS, key=len, reverse=True):
        file = file.replace(f'"{word}"', '""')
    stretches = {file[place : place + length] for place in range(len(file))}
    return {
        text[place : place + length]
        for line in source.read_text(encoding="utf-8").splitlines()
        for text in texts_in(json.loads(line))
        for place in range(len(text) - length + 1)
    } & stretches


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [
        chat_row(NOON, SECRETS[0], session_id="oberhuber", user="wilhelmina.o", id="chatcmpl-8f7a6b5c"),
        chat_row(NOON + 1, SECRETS[2], answer=SECRETS[1], tags=["payroll-secrets"], slo_class="gold-customers"),
        chat_row(NOON + 5, SECRETS[0], "fine", SECRETS[1], session_id="oberhuber", user="wilhelmina.o"),
        chat_row(NOON + 6, SECRETS[0], "fine", SECRETS[2], tokens=None, answer="Das weiß ich nicht genau."),
    ]
    return write_log(tmp_path / "access.jsonl", *rows)


def test_no_eight_characters_of_the_quick_sample_are_left(tmp_path: Path) -> None:
    assert found_of_the_source(QUICK, anonymized(QUICK, tmp_path / "out.jsonl")) == set()
    # The search finds what is there.
    assert len(found_of_the_source(QUICK, QUICK)) > 10_000


@pytest.mark.parametrize("flags", [(), ("--no-redact",), ("--block-tokens", "1")], ids=" ".join)
def test_no_eight_characters_of_a_log_are_left(tmp_path: Path, log: Path, flags: tuple[str, ...]) -> None:
    out = anonymized(log, tmp_path / "out.jsonl", *flags)
    assert found_of_the_source(log, out) <= counted_up(SECRETS[1])
    assert [record.slo_class for record in read_trace(out)] == ["interactive", "class-1", "interactive", "interactive"]


def counted_up(text: str) -> set[str]:
    """The text counts from 1 to 7, as ids of blocks do: letters, names and other numbers have no such excuse."""
    stretches = (text[place : place + 8] for place in range(len(text) - 7))
    return {stretch for stretch in stretches if set(stretch) <= set("1234567,")}


def token_by_token(plan: ReplayPlan) -> list[TraceRecord]:
    return [
        TraceRecord(
            request.request_id,
            request.scheduled_ns,
            request.output_tokens,
            prompt_token_count=len(request.prompt_token_ids),
            prompt_blocks=PromptBlocks(request.prompt_token_ids, 1),
        )
        for request in plan.requests
    ]


def test_a_replay_of_the_file_sends_as_many_tokens_that_share_as_much(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(MODEL)
    out = anonymized(QUICK, tmp_path / "out.jsonl")
    source, written = (
        build_plan(read_trace(path), tokenizer, source="x", source_sha256="", seed=1) for path in (QUICK, out)
    )
    for asked, sent in zip(source.requests, written.requests, strict=True):
        assert len(sent.prompt_token_ids) == len(asked.prompt_token_ids)
        assert (sent.output_tokens, sent.scheduled_ns, sent.turn, sent.think_time_ns, sent.slo_class, sent.tags) == (
            asked.output_tokens, asked.scheduled_ns, asked.turn, asked.think_time_ns, asked.slo_class, asked.tags,
        )  # fmt: skip
    for cache_blocks in (None, 100, 20):
        expected = promised_sharing(token_by_token(source), 16, cache_blocks)
        assert promised_sharing(read_trace(out), 16, cache_blocks).hit_rate == expected.hit_rate
        assert promised_sharing(token_by_token(written), 16, cache_blocks).hit_rate == expected.hit_rate
        assert expected.hit_rate


def test_lengths_are_those_that_a_replay_of_the_log_would_have(tmp_path: Path, log: Path) -> None:
    encoder = PromptEncoder(load_tokenizer(MODEL))
    out = read_trace(anonymized(log, tmp_path / "out.jsonl"))
    assert [record.prompt_token_count for record in out] == [len(encoder.encode(record)) for record in read_trace(log)]
    assert [record.max_tokens for record in out][:3] == [3, 3, 3]
    assert [record.turn for record in out] == [1, 1, 2, 1]


def test_what_was_done_is_counted_and_nothing_of_it_named(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out.jsonl"
    text = printed("anonymize", log, "--tokenizer", MODEL, "--out", out)
    assert "step anonymize: 4 rows in, 4 out, 4 touched; texts: 4, unlike_blocks: " in text
    assert "classes_renamed: 1, tags_renamed: 1" in text
    assert "payroll" not in text
    printed("anonymize", log, "--tokenizer", MODEL, "--out", out, "--force", "--keep", "gold-customers")
    assert read_trace(out)[1].slo_class == "gold-customers"
    assert "which is there already" in refusal("anonymize", log, "--tokenizer", MODEL, "--out", out)
