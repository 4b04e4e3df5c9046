"""Both APIs, by the name that the settings use and by the form of prompt that each takes."""

from __future__ import annotations

from quantgate.targets.openai.api.chat import CHAT
from quantgate.targets.openai.api.completions import COMPLETIONS
from quantgate.targets.openai.api.dialect import Dialect
from quantgate.targets.openai.settings import PromptChoice

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (COMPLETIONS, CHAT)}
DIALECT_OF_FORM: dict[PromptChoice, Dialect] = {
    form: dialect for dialect in DIALECTS.values() for form in dialect.forms
}
