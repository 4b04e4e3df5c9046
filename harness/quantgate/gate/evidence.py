"""The run's tables, paired: the same requests and the same quality items on the baseline and on another arm."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.judging.pair_verdicts import JudgedPair, judged_pairs
from quantgate.metrics.columns import is_equal
from quantgate.stats.clusters import cluster_numbers, run_length
from quantgate.store.run_folder import LoadedRun
from quantgate.store.tier_status import QualityTier, TierStatus

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
_BLOCKS_THAT_CARRY_AN_INTERVAL = 16

ItemKey = tuple[str, str]
"""(task, item id)"""


@dataclass(frozen=True, slots=True)
class QualityItem:
    value: float
    floor: float
    cluster: str


QualityIndex = dict[tuple[str, str, str], dict[ItemKey, QualityItem]]
"""(arm, tier, metric) -> item -> what was measured."""


@dataclass(frozen=True, slots=True)
class QualityPairs:
    """Values of the same items on both arms, [n] each; floors are NaN where the item states none.

    lost: items that the baseline has and the other arm failed; won: the reverse.
    """

    baseline: Floats
    candidate: Floats
    floors: Floats
    clusters: Indices
    lost: int
    won: int


@dataclass(frozen=True, slots=True)
class Pairing:
    """One arm beside the baseline. Row i of both tables is the same request in the same pass.

    clusters: [rows], requests whose times depend on each other (neighbours in the schedule, turns of a session).
    unpaired: requests of the baseline that the other arm never saw, or the reverse.
    judged_pairs: of all arms. noise_id: the run's A/A arm. tier_statuses: how far each tier was measured on the other
    arm.
    """

    baseline_id: str
    candidate_id: str
    baseline: pa.Table
    candidate: pa.Table
    clusters: Indices
    unpaired: int
    output_lengths: str
    quality_index: QualityIndex
    judged_pairs: list[JudgedPair] = field(default_factory=list)
    noise_id: str | None = None
    tier_statuses: dict[QualityTier, TierStatus] = field(default_factory=dict)

    def of_class(self, slo_class: str | None) -> Pairing:
        """The requests of one SLO class alone; all of them for None."""
        if slo_class is None:
            return self
        rows = np.flatnonzero(is_equal(self.baseline, "slo_class", slo_class))
        return replace(
            self, baseline=self.baseline.take(rows), candidate=self.candidate.take(rows), clusters=self.clusters[rows]
        )

    def quality(self, tier: str, metric: str, task: str | None, *, lost_as: float | None = None) -> QualityPairs:
        """The items that both arms have, of one task or of all.

        lost_as: what an item counts as that the other arm alone failed; None leaves it out. An arm without a single
        item was not measured, and has lost none.
        """
        own, other = (
            {
                key: item
                for key, item in self.quality_index.get((arm_id, tier, metric), {}).items()
                if task is None or key[0] == task
            }
            for arm_id in (self.baseline_id, self.candidate_id)
        )
        lost = own.keys() - other.keys() if other else set()
        keys = sorted(own.keys() & other.keys() if lost_as is None else (own.keys() & other.keys()) | lost)
        return QualityPairs(
            baseline=np.array([own[key].value for key in keys], dtype=np.float64),
            candidate=np.array([other[key].value if key in other else lost_as for key in keys], dtype=np.float64),
            floors=np.array([own[key].floor for key in keys], dtype=np.float64),
            clusters=cluster_numbers([(key[0], own[key].cluster) for key in keys]),
            lost=len(lost),
            won=len(other.keys() - own.keys()),
        )

    def tasks(self) -> set[str]:
        """Names of the tasks that the baseline answered."""
        indexed = self.quality_index.items()
        return {
            task for (arm, tier, _), items in indexed if (arm, tier) == (self.baseline_id, "task") for task, _ in items
        }

    def why_unmeasured(self, tier: QualityTier) -> str | None:
        """Why the tier could not be measured on the other arm; None where it was, at least in part, or nobody said."""
        status = self.tier_statuses.get(tier)
        return status.in_words if status is not None and status.status == "not_measurable" else None

    def distribution(self, metric: str) -> tuple[Floats, Indices]:
        """The other arm's values, each a comparison with the baseline over one sequence, and their clusters."""
        items = self.quality_index.get((self.candidate_id, "distribution", metric), {})
        values = np.array([items[key].value for key in sorted(items)], dtype=np.float64)
        return values, cluster_numbers([items[key].cluster for key in sorted(items)])


class Evidence:
    """Pairs the arms of one run, each two once; indexes the quality table once."""

    def __init__(self, run: LoadedRun) -> None:
        self._requests = run.requests
        self._output_lengths = run.manifest.workload.output_lengths if run.manifest.workload else "forced"
        self._quality_index = _index_quality(run.quality)
        self._judged_pairs = judged_pairs(run.judgements)
        self._noise_id = next((arm.arm_id for arm in run.manifest.arms if arm.role == "aa"), None)
        self._tier_statuses: dict[str, dict[QualityTier, TierStatus]] = defaultdict(dict)
        for status in run.manifest.quality_tiers:
            self._tier_statuses[status.arm_id][status.tier] = status
        self._pairings: dict[tuple[str, str], Pairing] = {}

    def request_count(self, arm_id: str) -> int:
        return self._rows_of(arm_id).num_rows

    def pair(self, baseline_id: str, candidate_id: str) -> Pairing:
        names = baseline_id, candidate_id
        if names not in self._pairings:
            self._pairings[names] = self._pair(*names)
        return self._pairings[names]

    def _pair(self, baseline_id: str, candidate_id: str) -> Pairing:
        baseline, candidate = self._rows_of(baseline_id), self._rows_of(candidate_id)
        own, other = _row_by_key(baseline), _row_by_key(candidate)
        shared = [key for key in own if key in other]
        baseline = baseline.take(pa.array([own[key] for key in shared], pa.int64()))
        candidate = candidate.take(pa.array([other[key] for key in shared], pa.int64()))
        return Pairing(
            baseline_id=baseline_id,
            candidate_id=candidate_id,
            baseline=baseline,
            candidate=candidate,
            clusters=_neighbours(baseline),
            unpaired=len(own.keys() ^ other.keys()),
            output_lengths=self._output_lengths,
            quality_index=self._quality_index,
            judged_pairs=self._judged_pairs,
            noise_id=self._noise_id,
            tier_statuses=self._tier_statuses.get(candidate_id, {}),
        )

    def _rows_of(self, arm_id: str) -> pa.Table:
        return self._requests.take(np.flatnonzero(is_equal(self._requests, "arm_id", arm_id)))


def _row_by_key(requests: pa.Table) -> dict[tuple[str, int], int]:
    ids, passes = requests.column("request_id").to_pylist(), requests.column("pass_index").to_pylist()
    return {(str(name), int(number or 0)): row for row, (name, number) in enumerate(zip(ids, passes, strict=True))}


def _neighbours(requests: pa.Table) -> Indices:
    """Clusters of consecutive requests within a block of the schedule; every turn of a session follows its first.

    Where the schedule has blocks enough, a whole block is a cluster: arms meet each block at another time, and what
    the machine did meanwhile is shared by the block's requests. A request keeps its cluster over all passes: its
    repetitions are no new requests.
    """
    columns = ("block_index", "scheduled_ns", "request_id", "session_id")
    rows = list(zip(*(requests.column(name).to_pylist() for name in columns), strict=True))
    units = [(block, session or request) for block, _, request, session in rows]
    in_order: dict[tuple[int, str], None] = {}
    for index in sorted(range(len(rows)), key=lambda row: rows[row][:2]):
        in_order.setdefault(units[index])
    enough_blocks = len({block for block, _ in in_order}) >= _BLOCKS_THAT_CARRY_AN_INTERVAL
    length = len(in_order) if enough_blocks else run_length(len(in_order))
    place_in_block: dict[int, int] = defaultdict(int)
    cluster_of = {}
    for block, unit in in_order:
        cluster_of[block, unit] = (block, place_in_block[block] // length)
        place_in_block[block] += 1
    return cluster_numbers([cluster_of[unit] for unit in units])


def _index_quality(quality: pa.Table) -> QualityIndex:
    index: QualityIndex = defaultdict(dict)
    columns = ("arm_id", "tier", "metric", "task", "item_id", "value", "floor", "cluster_id")
    rows = zip(*(quality.column(name).to_pylist() for name in columns), strict=True)
    for arm, tier, metric, task, item, value, floor, cluster in rows:
        index[arm, tier, metric][task, item] = QualityItem(value, float("nan") if floor is None else floor, cluster)
    return dict(index)
