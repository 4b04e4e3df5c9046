"""Where an OpenAI-compatible server is and how it is to be asked."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

ApiChoice = Literal["auto", "chat", "completions"]
PromptChoice = Literal["auto", "token_ids", "text", "messages"]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIXED_KEYS = frozenset({"messages", "model", "n", "prompt", "stream"})
"""What a replay itself decides: were they overridden, the answers could not be read or would not be this traffic's."""


class EndpointSettings(BaseModel):
    """One server. The API key stays in the environment: it is named here, and no file, log or error shows it.

    `extra_body` is merged into the body of every generation request, after everything that the target itself puts
    there; a key that is null there takes the target's own key of that name out.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    url: str = Field(description="the server's root, such as http://localhost:8000; a /v1 at the end is understood")
    model: str | None = Field(None, min_length=1, description="null: the only model that the server lists")
    api: ApiChoice = Field(
        "auto", description="auto: completions where the prompt can be sent as token ids or text, else chat"
    )
    prompt_as: PromptChoice = Field(
        "auto", description="auto: token ids where the server takes them, else text, else messages"
    )
    key_env: str = Field("OPENAI_API_KEY", description="name of the environment variable that holds the API key")
    extra_body: dict[str, Any] = Field({}, description="more fields for the body of every generation request")
    chat_template_kwargs: dict[str, Any] = Field({}, description="arguments for the server's own chat template")
    max_retries: int = Field(
        0, ge=0, le=10, description="further attempts before the first byte of an answer; their time is in TTFT"
    )
    connect_timeout_s: float = Field(10.0, gt=0)
    read_timeout_s: float = Field(
        300.0, gt=0, description="longest silence inside one answer, and longest wait for all of one that is no stream"
    )

    @field_validator("url")
    @classmethod
    def _is_a_root(cls, url: str) -> str:
        """The root without a slash at its end and without /v1."""
        try:
            parts = urlsplit(url.strip())
            _ = parts.port
        except ValueError:
            raise ValueError(f"{url!r} is no URL; expected one such as http://localhost:8000") from None
        if parts.username is not None or parts.password is not None:
            raise ValueError("the URL holds a user name or password; put the key into an environment variable instead")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no http or https URL; expected one such as http://localhost:8000")
        if parts.query or parts.fragment:
            raise ValueError(
                f"{url!r} has a query or fragment; expected the server's root, such as http://localhost:8000"
            )
        path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
        return f"{parts.scheme}://{parts.netloc}{path}"

    @field_validator("key_env")
    @classmethod
    def _is_a_name(cls, key_env: str) -> str:
        # Not quoted: whoever misunderstands the field writes the key itself there.
        if _VARIABLE.fullmatch(key_env) is None:
            raise ValueError(
                "this is no name of an environment variable; expected one such as OPENAI_API_KEY, in which the key is"
            )
        return key_env

    @field_validator("extra_body")
    @classmethod
    def _leaves_the_traffic_alone(cls, extra_body: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(_FIXED_KEYS & extra_body.keys())
        if taken:
            raise ValueError(f"{taken[0]} is set by the replay itself; remove it from extra_body")
        return extra_body

    @model_validator(mode="after")
    def _prompt_fits_the_api(self) -> EndpointSettings:
        fits = {"completions": ("auto", "token_ids", "text"), "chat": ("auto", "messages")}
        allowed = fits.get(self.api)
        if allowed is not None and self.prompt_as not in allowed:
            raise ValueError(
                f"the {self.api} API does not take a prompt as {self.prompt_as}; expected {' or '.join(allowed)}"
            )
        return self
