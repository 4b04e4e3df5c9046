"""What a caller brings to the preparation of checkpoints: schemes that name a slow recipe quantize a model once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quantgate_engine.quant.calibration.settings import CalibrationSettings

Advance = Callable[[float, str], None]
"""Called with how many layers are done, and a short text of what is going on; from any thread."""


class PreparationProgress(Protocol):
    """Who is told what takes time; called only where there is something to make."""

    def note(self, text: str) -> None: ...

    def phase(self, title: str, total: float) -> AbstractContextManager[Advance]:
        """total: layers of the model."""
        ...


class Unseen:
    """Progress that nobody watches."""

    def note(self, text: str) -> None:
        """Told to nobody."""

    @contextmanager
    def phase(self, _title: str, _total: float) -> Iterator[Advance]:
        yield lambda _done, _doing: None


@dataclass(frozen=True, slots=True)
class Preparation:
    """forbidden_passages: gives `passage_hashes` of every text that the model may be judged by, which calibration text
    is kept apart from; the engine itself judges nothing and knows of none. calibration: None takes the usual amount.
    """

    forbidden_passages: Callable[[], frozenset[str]] = frozenset
    progress: PreparationProgress = field(default_factory=Unseen)
    calibration: CalibrationSettings | None = None
