"""What a user may call a prompt, and how each kind becomes token ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quantgate_engine.argument_checks import is_whole
from quantgate_engine.chat_messages import ChatMessage, for_template, is_message, require_characters
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Prompt = str | Sequence[int] | Sequence[ChatMessage]
"""Text, token ids, or chat messages (`role` and `content`)."""


_GIVEN_TO_TEMPLATES = frozenset({"messages", "self"})
"""Names that the rendering of a template takes for itself, beside the parameters of the call."""


def encode_prompt(
    tokenizer: PreTrainedTokenizerFast,
    prompt: Prompt,
    *,
    add_special_tokens: bool = True,
    template_arguments: Mapping[str, Any] | None = None,
) -> tuple[int, ...]:
    """Token ids of a prompt: text as the tokenizer encodes it by default, chat messages through the model's template.

    The template opens the assistant's turn, and reads `template_arguments` beside the messages. add_special_tokens
    concerns text alone. Raises ConfigurationError where the prompt is of none of these kinds, a message has another
    role or no text, or the model has no template or its template refuses the messages.
    """
    if isinstance(prompt, str):
        require_characters(prompt, "A prompt")
        return tuple(tokenizer(prompt, add_special_tokens=add_special_tokens)["input_ids"])
    items: list[Any] = (
        list(prompt) if isinstance(prompt, Iterable) and not isinstance(prompt, bytes | bytearray | Mapping) else [None]
    )
    if all(is_whole(item) for item in items):
        return tuple(int(item) for item in items)
    if not all(map(is_message, items)):
        raise ConfigurationError(
            "A prompt is a string, a list of token ids, or a list of chat messages with `role` and `content`; "
            f"got {shown(prompt)}."
        )
    if tokenizer.chat_template is None:
        raise ConfigurationError("The model has no chat template; give the prompt as a string or as token ids.")
    messages = [for_template(item, f"message {number} of a chat") for number, item in enumerate(items)]
    return _apply_template(tokenizer, messages, template_arguments or {}, opens=True)


def require_template_variables(tokenizer: PreTrainedTokenizerFast, arguments: Mapping[str, Any]) -> None:
    """Raises ConfigurationError for arguments that are no variables of the template, but say how it is applied."""
    # Here, not at the top: `import quantgate_engine` stays light.
    from inspect import signature

    own = _GIVEN_TO_TEMPLATES | signature(tokenizer.apply_chat_template).parameters.keys()
    reserved = sorted(arguments.keys() & own)
    if reserved:
        raise ConfigurationError(
            f"Chat template arguments name {', '.join(reserved)}; expected only variables of the model's own template."
        )


def turn_starts(
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[ChatMessage],
    token_ids: Sequence[int],
    template_arguments: Mapping[str, Any] | None = None,
) -> tuple[int, ...]:
    """Positions in the encoded chat at which its user's turns start, oldest first (see `RequestTerms.turn_starts`).

    A turn is left out where the template does not write what stands before it as it writes the whole chat.
    """
    starts: list[int] = []
    for number, message in enumerate(messages):
        if message["role"] == "user":
            before = _tokens_before(tokenizer, messages[:number], token_ids, template_arguments or {})
            if before is not None and tuple(token_ids[: len(before)]) == before:
                starts.append(len(before))
    return tuple(starts)


def _tokens_before(
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[ChatMessage],
    token_ids: Sequence[int],
    template_arguments: Mapping[str, Any],
) -> tuple[int, ...] | None:
    """How the template writes the messages by themselves (None: not at all).

    Before the first of them stands the token that begins every text, where the model has one.
    """
    if not messages:
        return tuple(token_ids[:1]) if token_ids[0] == tokenizer.bos_token_id else ()
    try:
        return _apply_template(tokenizer, [dict(each) for each in messages], template_arguments, opens=False)
    except ConfigurationError:
        return None


def _apply_template(
    tokenizer: PreTrainedTokenizerFast, messages: list[dict[str, Any]], arguments: Mapping[str, Any], *, opens: bool
) -> tuple[int, ...]:
    """opens: writes the beginning of the assistant's turn behind the messages."""
    # Here, not at the top: `import quantgate_engine` stays light.
    from jinja2 import TemplateError

    require_template_variables(tokenizer, arguments)
    try:
        token_ids = tokenizer.apply_chat_template(messages, add_generation_prompt=opens, return_dict=False, **arguments)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as refused:
        # Templates raise on what their model does not know, such as two user turns in a row; and they add strings.
        raise ConfigurationError(f"The model's chat template refuses the messages: {refused}.") from refused
    return tuple(token_ids)
