"""What can go wrong with a server, each in a sentence of its own that names the URL and what to do."""

from __future__ import annotations

import html
import re
from typing import Any

from quantgate.json_text import parse_json
from quantgate.targets.openai.transport import Breakage, TransportError
from quantgate.targets.transfer import ErrorKind
from quantgate_engine.errors import ConfigurationError, RunError

_SHOWN_CHARACTERS = 200
_MESSAGE_KEYS = ("error", "message", "detail", "msg")
_PAGE_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


class EndpointError(RunError):
    """A request to a server that failed. `status` is that of the answer, where there was one.

    `retry_after_s`: how long the server asked to be left alone. `breakage`: how the connection failed, if it did.
    `seen`: what came in place of an answer, in a few words for another sentence.
    """

    def __init__(
        self,
        message: str,
        kind: ErrorKind,
        status: int | None = None,
        *,
        retry_after_s: float | None = None,
        breakage: Breakage | None = None,
        seen: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retry_after_s = retry_after_s
        self.breakage = breakage
        self.seen = message.rstrip(".") if seen is None else seen


class EndpointSettingError(EndpointError, ConfigurationError):
    """A request that cannot succeed before the user changes a setting: URL, model or key (exit code 2)."""

    exit_code = ConfigurationError.exit_code


_BREAKAGES: dict[Breakage, tuple[ErrorKind, str]] = {
    "unknown_host": ("connect", "there is no host of this name; check the URL"),
    "refused": ("connect", "nothing listens there (connection refused); start the server or check host and port"),
    "unreachable": ("connect", "the host cannot be reached ({detail}); check the URL and the network"),
    "connect_timeout": ("connect", "no connection within connect_timeout_s; check the host or allow more time"),
    "tls": ("connect", "no secure connection ({detail}); check the certificate or use the http URL"),
    "read_timeout": ("timeout", "the server was silent for read_timeout_s; look at the server or allow more time"),
    "closed": ("early_close", "the server closed the connection before its answer was whole; look at its log"),
    "invalid": ("malformed_event", "what answers there does not speak HTTP ({detail}); check the port and the scheme"),
    "compressed": (
        "malformed_event",
        "the answer is compressed ({detail}), though the request declined that; turn compression off in the server or "
        "the proxy before it",
    ),
}


def broken_connection(url: str, error: TransportError) -> EndpointError:
    kind, what = _BREAKAGES[error.breakage]
    message = f"{url}: {what.format(detail=one_line(error.detail) or 'no details')}."
    refusal = EndpointSettingError if error.breakage == "unknown_host" else EndpointError
    return refusal(message, kind, breakage=error.breakage, seen=error.breakage.replace("_", " "))


_BY_STATUS: dict[int, str] = {
    404: "there is no such path or model{said}; check the URL and the model's name",
    405: "there is no such path{said}; check the URL",
    413: "the request is too large for the server{said}; clip the prompts or raise its limit",
    429: "too many requests{said}; ask for a higher limit or replay more slowly",
}
_BY_HUNDREDS: dict[int, str] = {
    2: "the status is not that of a whole answer{said}; check the URL",
    3: "the server points elsewhere{said}; give the URL that it points to",
    4: "the server refused the request{said}; check the model and the settings",
    5: "the server failed{said}; look at its log",
}


def refused_by_status(
    url: str, status: int, said: str, *, key_env: str, key_sent: bool, retry_after_s: float | None = None
) -> EndpointError:
    """An answer whose status is not 200; `said` is what the server gave as the reason, if anything."""
    seen = f"status {status}{': ' if said else ''}{said}"
    quoted = f" ({seen})"
    refusal = EndpointError
    if status in (401, 403):
        why = f"the API key in {key_env} is not accepted" if key_sent else f"an API key is needed, {key_env} is not set"
        what = f"{why}{quoted}; set {key_env} to a valid key"
        refusal = EndpointSettingError
    else:
        # Not `format`: what a server says may hold braces.
        pattern = _BY_STATUS.get(status) or _BY_HUNDREDS.get(status // 100, _BY_HUNDREDS[2])
        what = pattern.replace("{said}", quoted)
    return refusal(f"{url}: {what}.", kind_of_status(status), status, retry_after_s=retry_after_s, seen=seen)


def not_an_api(url: str, what: str) -> EndpointError:
    return EndpointError(
        f"{url}: the answer is not that of an OpenAI-compatible API ({what}); check the URL.",
        "malformed_event",
        200,
        seen=f"status 200: {what}",
    )


def no_stream(url: str, what: str) -> EndpointError:
    return EndpointError(
        f"{url}: the answer to a request for a stream is no event stream but {what}; check that the server can stream.",
        "malformed_event",
        200,
    )


def unreadable_event(url: str, what: str) -> EndpointError:
    return EndpointError(
        f"{url}: an event of the stream cannot be read ({what}); check that the server is compatible.",
        "malformed_event",
        200,
    )


def reported_in_stream(url: str, said: str) -> EndpointError:
    return EndpointError(
        f"{url}: the server reported an error in its stream ({said}); look at its log.", "server_error", 200
    )


def empty_answer(url: str, asked: int | None) -> EndpointError:
    """`asked`: the most tokens that were asked for, where that is known."""
    wanted = "an answer was" if asked is None else "a token was" if asked == 1 else f"up to {asked} were"
    return EndpointError(
        f"{url}: the answer came to its end without a token, though {wanted} asked for; look at the server's log.",
        "empty_answer",
        200,
    )


def kind_of_status(status: int) -> ErrorKind:
    if status == 429:
        return "status_429"
    if status >= 500:
        return "status_5xx"
    return "status_4xx" if status >= 400 else "malformed_event"


def said_in(body: bytes) -> str:
    """What an error body says, in one line: OpenAI's shape, FastAPI's, plain text, or the title of a page."""
    text = body.decode("utf-8", errors="replace")
    try:
        return one_line(message_of(parse_json(text)))
    except ValueError:
        title = _PAGE_TITLE.search(text)
        if title is not None:
            return one_line(html.unescape(title.group(1)))
        return "" if "<" in text else one_line(text)


def message_of(document: Any) -> str:
    """The message in an error document: {"error": {"message": ...}}, {"error": ...}, {"message": ...}, {"detail": ...}.

    Nothing else of it is quoted: FastAPI's list of problems repeats the input, prompts included.
    """
    while isinstance(document, dict | list) and document:
        if isinstance(document, list):
            document = document[0]
        else:
            document = next((document[key] for key in _MESSAGE_KEYS if document.get(key)), None)
    return document if isinstance(document, str) else ""


def one_line(text: str) -> str:
    """Without line breaks or control characters, and not too long: text of a server is shown on terminals."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split()).rstrip(".")
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "..."
