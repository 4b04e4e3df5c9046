"""Refusals and failures in the shape that OpenAI's clients read."""

from __future__ import annotations

import math
import re
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

_MOST_CHARACTERS = 1000
_LONG_WORD = re.compile(r"\S{120,}")


class ApiError(HTTPException):
    """An error answer: {"error": {"message", "type", "param", "code"}}, with Retry-After where waiting helps.

    `message` is one sentence for the caller; what it quotes of a request is cut short. It derives from the framework's
    own error, which passes through body parsing unchanged.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        error_type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        headers = dict(headers or {})
        if retry_after_s is not None:
            headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
        super().__init__(status, _brief(message), headers or None)
        self.error_type = error_type
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.detail, "type": self.error_type, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body(), status_code=self.status_code, headers=self.headers)


def _brief(message: str) -> str:
    words = _LONG_WORD.sub(lambda word: f"{word[0][:80]}...{word[0][-20:]}", message)
    return words if len(words) <= _MOST_CHARACTERS else f"{words[:_MOST_CHARACTERS]}..."


def bad_request(message: str, param: str | None = None) -> ApiError:
    return ApiError(400, message, param=param)


def unavailable(message: str, code: str, retry_after_s: float | None = None) -> ApiError:
    return ApiError(503, message, error_type="server_error", code=code, retry_after_s=retry_after_s)
