"""One JSON object from one row of a file."""

from __future__ import annotations

import json
from typing import Any

from quantgate_engine.errors import ConfigurationError


def json_object(text: str, where: str) -> dict[str, Any]:
    """The object. Raises ConfigurationError, beginning with `where`, for any other text."""
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"{where}: expected one JSON object, got text that is not JSON ({error.msg} at column {error.colno}); mend "
            "or remove the line."
        ) from None
    except (ValueError, RecursionError):
        raise ConfigurationError(f"{where}: expected one JSON object of sensible size and depth.") from None
    if not isinstance(row, dict):
        raise ConfigurationError(f"{where}: expected one JSON object, got another JSON value.")
    return row
