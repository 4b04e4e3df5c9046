"""Where a span has what a replay needs: the names of OpenTelemetry's GenAI conventions, new and old, new ones first.

`gen_ai.usage.prompt_tokens` and `completion_tokens` were renamed in 2024; the `llm.` names are those of OpenLLMetry
before it took up the conventions.
"""

from __future__ import annotations

from quantgate.traces.openai_log.lookup import first_present
from quantgate.traces.otel_spans.span import Span
from quantgate_engine.shown import on_one_line

OPERATION = ("gen_ai.operation.name",)
REQUEST_TYPE = ("llm.request.type", "gen_ai.request.type")
MODEL = ("gen_ai.request.model", "gen_ai.response.model", "llm.request.model")
INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens")
MAX_TOKENS = ("gen_ai.request.max_tokens", "llm.request.max_tokens")
CHOICES = ("gen_ai.request.choice.count",)
CONVERSATION = ("gen_ai.conversation.id",)
FINISH_REASONS = ("gen_ai.response.finish_reasons",)
USER = ("user.id", "enduser.id")
TOOLS = ("gen_ai.tool.definitions", "gen_ai.request.functions.0.name", "llm.request.functions.0.name")

_INFERENCE = frozenset({"chat", "generate_content", "text_completion"})
_INFERENCE_TYPES = frozenset({"chat", "completion"})
_PROMPTS = ("gen_ai.input.messages", "gen_ai.prompt", "gen_ai.prompt.0.content")
_LONGEST_KIND = 40


def in_attributes(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names as paths from the span, which is how errors name them."""
    return tuple(f"attributes.{name}" for name in names)


def other_kind(span: Span) -> str | None:
    """None for a request to a model that answers in text; else what the span is, in a word to count it by.

    Spans without the operation's name tell by the type of their request, or by a model beside a prompt or an output.
    """
    for names, inference in ((OPERATION, _INFERENCE), (REQUEST_TYPE, _INFERENCE_TYPES)):
        _, value = first_present(span.attributes, names)
        if isinstance(value, str) and value:
            return None if value in inference else on_one_line(value, _LONGEST_KIND)
    told = first_present(span.attributes, MODEL)[0] and first_present(span.attributes, OUTPUT_TOKENS + _PROMPTS)[0]
    return None if told else "no_model_request"
