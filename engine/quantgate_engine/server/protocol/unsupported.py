"""Fields that would change an answer and that this server does not have: refused, unless they ask for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticCustomError

# Each field with the values that leave an answer as it is; None, which is as good as absent, always does.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "add_generation_prompt": (True,),
    "allowed_token_ids": ([],),
    "audio": (),
    "bad_words": ([],),
    "best_of": (1,),
    "chat_template": (),
    "continue_final_message": (False,),
    "documents": ([],),
    "ebnf": (),
    "function_call": ("none",),
    "functions": ([],),
    "grammar": ("",),
    "guided_choice": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_json_object": (False,),
    "guided_regex": (),
    "include_stop_str_in_output": (False,),
    "json_schema": (),
    "length_penalty": (1,),
    "logits_processors": ([],),
    "min_tokens": (0,),
    "modalities": (["text"],),
    "prediction": (),
    "prompt_embeds": (),
    "reasoning_effort": (),
    "regex": (),
    "response_format": ({"type": "text"},),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "structured_outputs": (),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "truncate_prompt_tokens": (),
    "typical_p": (1,),
    "use_beam_search": (False,),
    "web_search_options": (),
}


def refuse_unsupported(fields: Mapping[str, Any], neutral_here: Mapping[str, tuple[Any, ...]]) -> None:
    """Raises PydanticCustomError, with the field in its context, for the first one that asks for something.

    neutral_here: fields that only this kind of request does not have, with the values that ask for nothing.
    """
    for name, neutral in {**_NEUTRAL, **neutral_here}.items():
        value = fields.get(name)
        if value is not None and value not in neutral:
            raise PydanticCustomError(
                "unsupported_field", "this server does not support it; leave it out", {"field": name}
            )
