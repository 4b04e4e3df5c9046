"""A file that is one JSON array gives its entries one by one, and says where it is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import patiently

from quantgate.traces import array_entries
from quantgate.traces.array_entries import read_array, starts_with_array
from quantgate_engine.errors import ConfigurationError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def refusal(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "a.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConfigurationError) as refused:
        list(read_array(path))
    sentence = str(refused.value)
    assert sentence.isprintable()
    assert len(sentence) < 400 + len(str(tmp_path))
    return sentence.removeprefix(f"{path}, ")


@patiently
@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 0, 2]), st.booleans(), st.integers(1, 40))
def test_entries_are_those_of_the_array_however_little_is_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], indent: int | None, escaped: bool, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("array") / "a.json"
    path.write_text(json.dumps(values, indent=indent, ensure_ascii=escaped) + "\n", encoding="utf-8", errors="replace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_entries, "_CHUNK_BYTES", chunk)
        entries = [json.loads(entry.text) for entry in read_array(path)]
    assert entries == json.loads(path.read_text(encoding="utf-8"))


def test_entries_know_the_line_on_which_they_start(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf\r\n [\r\n{"a":\r\n1}, {"b": 2}\r\n,\r\n\r\n3]\r\n')
    assert starts_with_array(path)
    assert [(entry.number, entry.text) for entry in read_array(path)] == [(3, '{"a":\r\n1}'), (4, '{"b": 2}'), (7, "3")]


@pytest.mark.parametrize(
    ("content", "told"),
    [("[]", True), ("\n\n [1]", True), ("", False), ("  ", False), ("{}", False), ('"["', False)],
)
def test_an_array_is_told_by_its_first_character(tmp_path: Path, content: str, told: bool) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    assert starts_with_array(path) is told


END = "got the end of the file, which has been cut off."


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[", f"line 1, column 2: expected entry 1 of the array, {END}"),
        ('[{"a": 1}', f"line 1, column 10: expected a comma or the array's end behind its entry 1, {END}"),
        ('[{"a": 1},\n', f"line 2, column 1: expected entry 2 of the array, {END}"),
        ('[\n{"a": 1},\n{"a": [1, 2', f"line 3: expected the array's entry 2, which begins here, to end, {END}"),
        ('[{"a": "never', f"line 1: expected the array's entry 1, which begins here, to end, {END}"),
        ("[1,]", "line 1, column 4: expected entry 2 of the array, got ']'."),
        ("[1 2]", "line 1, column 4: expected a comma or the array's end behind its entry 1, got '2'."),
        ("[1]\n[2]", "line 2, column 1: expected nothing behind the array's end, got '['."),
        (
            '[{"a": 1},\n {"b": tru, "c": "a text that stands behind it"}]',
            "line 2, column 8: expected JSON, got text that is not (Expecting value) in the array's entry 2; mend or "
            "remove the entry.",
        ),
        (
            '[{"a": "a\nb"}, {"a": "a text that stands behind it"}]',
            "line 1, column 10: expected JSON, got text that is not (Invalid control character at) in the array's "
            "entry 1; mend or remove the entry.",
        ),
        ("[" * 100_000, "line 1: expected an array's entry of sensible size and depth."),
        (f"[{'9' * 5000}]", "line 1: expected an array's entry of sensible size and depth."),
        (
            b'["\xc3\xa4", "\xe4"]',
            "byte 9 of the file: expected UTF-8 text, got the byte 0xe4; save the file as UTF-8.",
        ),
        (b'["\xc3', "byte 3 of the file: expected UTF-8 text, got the byte 0xc3; save the file as UTF-8."),
    ],
)
def test_damage_is_told_with_its_place(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    assert refusal(tmp_path, content) == sentence


def test_a_byte_that_is_no_text_is_found_behind_many_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_entries, "_CHUNK_BYTES", 7)
    content = json.dumps(["ä" * 10] * 10, ensure_ascii=False).encode() + b"\xff"
    assert refusal(tmp_path, content).startswith(f"byte {len(content)} of the file: ")


def test_an_entry_longer_than_any_conversation_is_refused_before_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_entries, "_CHUNK_BYTES", 100)
    monkeypatch.setattr(array_entries, "LONGEST_ENTRY", 1_000_000)
    path = tmp_path / "a.json"
    path.write_text(f'[1,\n"{"x" * 999_990}"]')
    assert len(list(read_array(path))) == 2
    assert refusal(tmp_path, f'[1,\n"{"x" * 5_000_000}"]') == (
        "line 2: expected entries of at most 1 million characters, got a longer one (entry 2); shorten or remove it."
    )
