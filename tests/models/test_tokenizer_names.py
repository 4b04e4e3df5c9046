"""What a tokenizer may be called: the Hub is asked once, by its own client, and only for what is spelled as an id."""

from __future__ import annotations

from pathlib import Path

import pytest

from quantgate_engine.errors import ModelError
from quantgate_engine.model import tokenizer
from quantgate_engine.model.hub_fetch import FILES_OF_A_TOKENIZER
from quantgate_engine.model.tokenizer import load_tokenizer


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, list[str]]]:
    """What the Hub is asked for; it gives an empty folder."""
    seen: list[tuple[str, list[str]]] = []

    def fetch(repository: str, files: list[str]) -> Path:
        seen.append((repository, files))
        return tmp_path

    monkeypatch.setattr(tokenizer, "fetch_from_hub", fetch)
    return seen


@pytest.mark.parametrize("name", ["nope", "./nope", "a/b/c", "/no/such/folder", "~nobody-at-all/x"])
def test_what_is_no_id_is_refused_without_asking_the_hub(asked: list[tuple[str, list[str]]], name: str) -> None:
    with pytest.raises(ModelError) as raised:
        load_tokenizer(name)
    assert str(raised.value).startswith(
        f"{name}: there is no tokenizer of this name and no such folder; expected one of "
    )
    assert asked == []


def test_of_an_id_no_weights_are_fetched_and_nothing_more_is_asked(asked: list[tuple[str, list[str]]]) -> None:
    with pytest.raises(ModelError, match="owner/name: no tokenizer can be read from it"):
        load_tokenizer("owner/name")
    assert asked == [("owner/name", FILES_OF_A_TOKENIZER)]
    assert not any("safetensors" in pattern or pattern.endswith(".py") for pattern in FILES_OF_A_TOKENIZER)
