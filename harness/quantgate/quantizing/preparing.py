"""Builds that a recipe quantizes before they are loaded (`int4-g64-gptq`): made in time, kept apart from our texts."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.progress import ProgressReporter
from quantgate.quantizing.evaluation_passages import evaluation_passages
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.preparation import Preparation
from quantgate_engine.prepared_model import is_prepared, prepared_model, require_preparable


def preparation(progress: ProgressReporter | None = None) -> Preparation:
    """progress: None where nothing is left to make, or nobody watches."""
    return Preparation(evaluation_passages) if progress is None else Preparation(evaluation_passages, progress)


def prepare_builds(builds: Iterable[tuple[str, str]], progress: ProgressReporter) -> None:
    """builds: model and scheme of each arm; those that need it are in the cache afterwards.

    Before the first is begun, which may take minutes, each is known to be possible. Raises ModelError,
    ConfigurationError or RunError.
    """
    needed = [(resolve_model(model, progress=progress.note), scheme) for model, scheme in builds if is_prepared(scheme)]
    for source, scheme in needed:
        require_preparable(source, scheme)
    for source, scheme in needed:
        prepared_model(source, scheme, preparation(progress))
