"""The body of a generation request, alike for every arm but for what its server can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quantgate.capabilities.capabilities import Capabilities
from quantgate.targets.openai.api.dialect import Dialect
from quantgate.targets.openai.api.registry import DIALECT_OF_FORM, DIALECTS
from quantgate.targets.openai.prompt import choose_prompt
from quantgate.targets.openai.settings import EndpointSettings, PromptChoice
from quantgate.workload.plan import PlannedRequest
from quantgate.workload.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class RequestBody:
    dialect: Dialect
    fields: dict[str, Any]

    @property
    def output_limit(self) -> int | None:
        """The most output tokens that it asks for; None where `extra_body` took the limit out."""
        limits = [self.fields.get(name) for name in ("max_tokens", "max_completion_tokens")]
        return max((limit for limit in limits if isinstance(limit, int)), default=None)


class BodyBuilder:
    """Decoding is greedy: arms differ in their weights, never in their luck.

    Of the fields beyond OpenAI's, `return_token_ids` goes only to servers that were found to take it, and `ignore_eos`,
    where the plan forces lengths, to all that were not found to disregard it. Class and session go to a server that
    tells by which SLO classes it schedules; a class that is none of those is left out: that means the most urgent one.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        model: str,
        capabilities: Capabilities | None,
        tokenizer: Tokenizer | None,
        slo_classes: tuple[str, ...] = (),
    ) -> None:
        self._settings = settings
        self._model = model
        self._capabilities = capabilities
        self._tokenizer = tokenizer
        self._slo_classes = slo_classes
        self._forms = allowed_forms(settings, capabilities)

    def build(self, request: PlannedRequest) -> RequestBody:
        """Raises ConfigurationError where the request has nothing that this server takes."""
        prompt = choose_prompt(request, self._forms, self._tokenizer)
        dialect = DIALECT_OF_FORM[prompt.form]
        fields = {
            "model": self._model,
            **dialect.put_prompt(prompt),
            "max_tokens": request.output_tokens,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._capabilities is not None:
            if request.ignore_eos and self._capabilities.ignore_eos is not False:
                fields["ignore_eos"] = True
            if self._capabilities.token_ids_returned:
                fields["return_token_ids"] = True
        fields |= self._scheduling(request)
        if self._settings.chat_template_kwargs and dialect is DIALECTS["chat"]:
            fields["chat_template_kwargs"] = self._settings.chat_template_kwargs
        fields |= self._settings.extra_body
        return RequestBody(dialect, {key: value for key, value in fields.items() if value is not None})

    def _scheduling(self, request: PlannedRequest) -> dict[str, Any]:
        if not self._slo_classes:
            return {}
        known = request.slo_class in self._slo_classes
        return {"slo_class": request.slo_class if known else None, "session_id": request.session_id}


def allowed_forms(settings: EndpointSettings, capabilities: Capabilities | None) -> tuple[PromptChoice, ...]:
    """In which forms prompts may go to this server, best first.

    Token ids only where the server takes them and reads them as the run's tokenizer does. Arguments for the server's
    chat template ask for the chat API.
    """
    if settings.prompt_as != "auto":
        return (settings.prompt_as,)
    if settings.api != "auto":
        dialects = [DIALECTS[settings.api]]
    elif settings.chat_template_kwargs:
        dialects = [DIALECTS["chat"]]
    else:
        dialects = [d for d in DIALECTS.values() if capabilities is None or d.offered_by(capabilities)]
    forms = [form for dialect in dialects for form in dialect.forms]
    takes_ids = capabilities is not None and capabilities.token_id_prompts and capabilities.tokenizer != "differs"
    return tuple(form for form in forms if form != "token_ids" or takes_ids)
