"""The authored texts, read from replay_samples/texts and checked for their form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Text(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Question(_Text):
    ask: str
    answer: str


class Passage(_Text):
    text: str
    questions: list[Question] = Field(min_length=2, max_length=2)

    @property
    def words(self) -> int:
        return len(self.text.split())


class Chats(_Text):
    single: list[str]
    pasted: list[str]
    dialogues: list[list[str]]


class CodeTask(_Text):
    function: str
    ask: str
    given: str | None = None


class ToolSituation(_Text):
    set: str
    user: str
    tool: str | None
    arguments: dict[str, Any] = Field(default_factory=dict)
    result: str | None = None
    then: str | None = None
    answer: str | None = None


class Tools(_Text):
    sets: dict[str, list[str]]
    situations: list[ToolSituation]


class RagStyle(_Text):
    system: str
    document: str
    user: str


class ToolStyle(_Text):
    system: str
    line: str


class Styles(_Text):
    rag: list[RagStyle]
    tools: list[ToolStyle]
    code: list[str | None]


@dataclass(frozen=True, slots=True)
class SampleTexts:
    """Everything that a person wrote for the samples."""

    passages: list[Passage]
    chats: Chats
    code: list[CodeTask]
    tools: Tools
    styles: Styles


def read_texts(folder: Path) -> SampleTexts:
    """Reads the five YAML files. Raises pydantic's ValidationError for a file of another form."""
    return SampleTexts(
        passages=TypeAdapter(list[Passage]).validate_python(_yaml(folder / "passages.yaml")),
        chats=Chats.model_validate(_yaml(folder / "chat.yaml")),
        code=TypeAdapter(list[CodeTask]).validate_python(_yaml(folder / "code.yaml")),
        tools=Tools.model_validate(_yaml(folder / "tools.yaml")),
        styles=Styles.model_validate(_yaml(folder / "styles.yaml")),
    )


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))
