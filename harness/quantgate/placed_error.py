"""What a model's own check refuses, with the place inside the model that is at fault."""

from __future__ import annotations

from quantgate.locations import Location, is_stated


class PlacedError(ValueError):
    """Raised in a pydantic validator in place of a bare ValueError.

    places: where the mistake can be mended, each with the sentence to say there. A mistake between two settings has
    two; the user is shown the first that the document states, and the last where it states none of them.
    """

    def __init__(self, *places: tuple[Location, str]) -> None:
        super().__init__(places[-1][1])
        self._places = places

    def in_document(self, document: object) -> tuple[Location, str]:
        """The place to show, and what to say there; `document` is what the model was made from."""
        return next((place for place in self._places if is_stated(document, place[0])), self._places[-1])
