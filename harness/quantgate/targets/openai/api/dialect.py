"""What differs between the two generation APIs: the path, how a prompt is put, where an event keeps its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quantgate.capabilities.capabilities import Capabilities
from quantgate.targets.openai.piece import StreamPiece
from quantgate.targets.openai.prompt import Prompt
from quantgate.targets.openai.settings import PromptChoice


@dataclass(frozen=True, slots=True)
class Dialect:
    """forms: in which a prompt can be put, best first. put_prompt: the fields that hold it.

    offered_by: whether a probed server has this API. read: one event's content; it raises MalformedEventError where a
    field is not what the API says.
    """

    name: str
    path: str
    forms: tuple[PromptChoice, ...]
    put_prompt: Callable[[Prompt], dict[str, Any]]
    offered_by: Callable[[Capabilities], bool]
    read: Callable[[dict[str, Any]], StreamPiece]
