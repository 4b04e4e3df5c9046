"""Which of the models that a server offers is asked."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.targets.openai.errors import EndpointSettingError, one_line

_WHERE = "--model, or the arm's field model in a suite"


def chosen_model(url: str, named: str | None, offered: Sequence[str], why_none: str = "") -> str:
    """The model that is named, else the only one offered; one that lists none is believed to have what is named.

    why_none: why nothing is offered, for the sentence. Raises EndpointSettingError.
    """
    listed = one_line(", ".join(offered))
    if named is not None:
        if offered and named not in offered:
            raise _wrong(f"{url}: does not offer the model {named!r}; expected one of ({_WHERE}): {listed}.")
        return named
    if not offered:
        cause = f" ({why_none})" if why_none else ""
        raise _wrong(f"{url}: lists no model under /v1/models{cause}; name it ({_WHERE}), or check the URL.")
    if len(offered) > 1:
        raise _wrong(f"{url}: offers {len(offered)} models; name one of them ({_WHERE}): {listed}.")
    return offered[0]


def _wrong(message: str) -> EndpointSettingError:
    return EndpointSettingError(message, "status_4xx")
