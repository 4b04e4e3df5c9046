"""Reads a judge's answer: one JSON object and nothing else."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from quantgate.targets.openai.surrogates import is_whole

_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(?P<body>.*?)\n?```\Z", re.DOTALL)


class JudgeReply(BaseModel):
    """`better` names the answer as it was shown."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    better: Literal["1", "2", "tie"]
    reason: str = ""


def read_reply(text: str | None) -> JudgeReply | None:
    """None where the text is not exactly such an object, or is damaged (half a character): a choice that had to be
    guessed would be no evidence.

    White space around the object and one Markdown fence about it are allowed; many models cannot leave it off.
    """
    if not is_whole(text or ""):
        return None
    stripped = (text or "").strip()
    fenced = _FENCE.match(stripped)
    try:
        return JudgeReply.model_validate_json(fenced["body"] if fenced else stripped)
    except ValidationError:
        return None
