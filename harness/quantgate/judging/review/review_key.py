"""`review_key.json`: which arm wrote which answer of a review queue; it stays in the run's folder."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quantgate.json_text import parse_json
from quantgate.judging.answer_pairs import AnswerPair
from quantgate.judging.pair_verdicts import Order, PairKey
from quantgate.problem import first_problem
from quantgate_engine.errors import ConfigurationError, RunError

KEY_FILE = "review_key.json"
KEY_SCHEMA: Literal["quantgate.review-key/1"] = "quantgate.review-key/1"
TextField = Literal["request", "answer_1", "answer_2"]
TEXT_FIELDS: tuple[TextField, ...] = ("request", "answer_1", "answer_2")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class KeyEntry(_Strict):
    """One pair as it was shown. `text_sha256`: hash of each of its texts, by the field of the queue that holds it."""

    arm_id: str
    request_id: str
    pass_index: int
    cluster: str
    order: Order
    text_sha256: dict[TextField, str]

    @property
    def pair_key(self) -> PairKey:
        return self.arm_id, self.request_id, self.pass_index


class ReviewKey(_Strict):
    schema_: Literal["quantgate.review-key/1"] = Field(KEY_SCHEMA, alias="schema")
    run_id: str
    entries: dict[str, KeyEntry] = {}


def key_entry(pair: AnswerPair, order: Order) -> KeyEntry:
    answers = pair.shown(order)
    texts = zip(TEXT_FIELDS, (pair.request, *answers), strict=True)
    return KeyEntry.model_validate(
        {
            "arm_id": pair.arm_id,
            "request_id": pair.request_id,
            "pass_index": pair.pass_index,
            "cluster": pair.cluster,
            "order": order,
            "text_sha256": {name: text_hash(text) for name, text in texts},
        }
    )


def text_hash(text: str) -> str:
    """Of the words alone: an editor may wrap lines and trim their ends without changing what was compared."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def read_key(folder: Path) -> ReviewKey:
    """Raises ConfigurationError where the run has none, RunError where it is damaged."""
    path = folder / KEY_FILE
    if not path.is_file():
        raise ConfigurationError(
            f"{folder} has no {KEY_FILE}, so that nobody knows which answer is whose; export a queue from this run "
            f"first: quantgate review export {folder}."
        )
    try:
        document = parse_json(path.read_bytes())
        return ReviewKey.model_validate(document)
    except ValidationError as error:
        raise RunError(first_problem(error, document, ReviewKey).sentence(str(path))) from None
    except (ValueError, OSError) as error:
        raise RunError(f"{path} cannot be read as JSON ({error}); export the queue again.") from None
