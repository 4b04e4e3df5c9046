"""Where a request goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.router.choices import CHOICES
from quantgate_engine.router.placement import Placement
from quantgate_engine.router.pool import Arrival, Pool
from quantgate_engine.router.settings import RouterSettings
from quantgate_engine.shown import shown, shown_name


class Routing:
    """Asks, in this order: which pool holds the request's blocks, whose rules take it, and whether that one is full.

    It goes by the requests so far and the pools' books alone, so the same requests at the same steps go the same way.
    """

    def __init__(
        self, pools: Sequence[Pool], slo_classes: Sequence[str], settings: RouterSettings, placement: Placement
    ) -> None:
        """slo_classes: all that some pool has; the first of them is the class of requests that name none."""
        self._pools = tuple(pools)
        self._by_name = {pool.name: pool for pool in pools}
        self._choose = CHOICES[settings.choice]
        self._placement = placement
        self._classes = slo_classes

    def with_class(self, request_id: str, terms: RequestTerms) -> RequestTerms:
        """The terms with a class that some pool has: their own, or the most urgent one of the first pool.

        Raises ConfigurationError where no pool has the class.
        """
        if terms.slo_class is None:
            return replace(terms, slo_class=self._classes[0])
        if terms.slo_class not in self._classes:
            raise ConfigurationError(
                f"Request {shown(request_id)} has the SLO class {terms.slo_class!r}; expected one of "
                f"{', '.join(self._classes)}."
            )
        return terms

    def pool_for(self, arrival: Arrival) -> Pool | None:
        """The pool that gets the request; None where no rule takes it.

        Where rules take it and none of their engines could ever run it, it is the first of them, whose refusal says
        why.
        """
        home = self._placement.home_of(arrival.terms)
        if home is not None and home.can_run(arrival):
            return home
        matching = [pool for pool in self._pools if self._takes(pool, arrival)]
        if not matching:
            return None
        able = [pool for pool in matching if pool.can_run(arrival)]
        return self._spilled(self._choose(able, self._placement.live), arrival) if able else matching[0]

    def output_room(self, arrival: Arrival) -> int:
        """The most output tokens, up to the request's own `max_tokens`, with which a pool's rule and engine take it.

        1 where none does: `refusal` says why.
        """
        return max((pool.output_room(arrival) for pool in self._pools), default=1)

    def refusal(self, arrival: Arrival) -> str:
        """Why no pool takes the request, with the numbers."""
        rules = "; ".join(f"{pool.name} takes {pool.settings.rule}" for pool in self._pools)
        return (
            f"Request {shown_name(arrival.request_id)} was rejected: no pool takes class {arrival.terms.slo_class} "
            f"with {len(arrival.prompt_token_ids)} prompt and {arrival.params.max_tokens} output tokens ({rules}); "
            "change the request, or the rule of a pool."
        )

    def _takes(self, pool: Pool, arrival: Arrival) -> bool:
        slo_class = str(arrival.terms.slo_class)
        sizes = len(arrival.prompt_token_ids), arrival.params.max_tokens
        return slo_class in pool.settings.slo_classes and pool.settings.rule.takes(slo_class, *sizes)

    def _spilled(self, pool: Pool, arrival: Arrival) -> Pool:
        """`pool`, or the one that it spills to."""
        spill = pool.settings.spill
        if spill is None or not pool.is_full(self._placement.live(pool)):
            return pool
        other = self._by_name[spill.to]
        return other if other.can_run(arrival) and not other.is_full(self._placement.live(other)) else pool
