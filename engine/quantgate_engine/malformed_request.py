"""What makes a request one that no engine could even hold, told before anything knows of it."""

from __future__ import annotations

from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.shown import shown


def malformation(request_id: object, prompt_token_ids: object, params: object, terms: object) -> str | None:
    """What is of the wrong type, in one sentence; None where nothing is. Params and terms have checked themselves."""
    if not isinstance(request_id, str) or not request_id:
        return f"A request's id is {shown(request_id)}; expected text of at least 1 character."
    who = f"Request {shown(request_id)}"
    for name, value, kind in (("params", params, SamplingParams), ("terms", terms, RequestTerms)):
        if not isinstance(value, kind):
            return f"{who} has the {name} {shown(value)}; expected a value of the class {kind.__name__}."
    if not isinstance(prompt_token_ids, tuple):
        return f"{who} has the prompt {shown(prompt_token_ids)}; expected a tuple of token ids."
    # All types at once, in C: a prompt may have many thousands of tokens, and hardly ever one of another type.
    if set(map(type, prompt_token_ids)) - {int}:
        place, wrong = next((place, each) for place, each in enumerate(prompt_token_ids) if type(each) is not int)
        return f"{who} has {shown(wrong)} as its prompt's token {place}; expected a token id, which is a whole number."
    return None
