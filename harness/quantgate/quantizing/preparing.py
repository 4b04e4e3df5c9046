"""Builds that a recipe quantizes before they are loaded (`int4-g64-gptq`): made in time, kept apart from our texts."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.progress import ProgressReporter
from quantgate.quantizing.evaluation_passages import evaluation_passages
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.preparation import Preparation
from quantgate_engine.prepared_model import is_prepared, prepared_model, require_preparable
from quantgate_engine.quant.layer_schemes import HEAD, find_schemes


def preparation(progress: ProgressReporter | None = None) -> Preparation:
    """progress: None where nothing is left to make, or nobody watches."""
    return Preparation(evaluation_passages) if progress is None else Preparation(evaluation_passages, progress)


def prepare_builds(builds: Iterable[tuple[str, str]], progress: ProgressReporter) -> None:
    """builds: model and scheme of each arm; those that need it are in the cache afterwards.

    Before the first is begun, which may take minutes, all are known to be possible as far as configurations and headers
    of files tell. Raises ModelError, ConfigurationError or RunError.
    """
    builds = list(builds)
    if not any(is_prepared(scheme) for _, scheme in builds):
        return
    sources = [(resolve_model(model, progress=progress.note), scheme) for model, scheme in builds]
    for source, scheme in sources:
        _require_fit(source, scheme)
    for source, scheme in sources:
        prepared_model(source, scheme, preparation(progress))


def _require_fit(source: ModelFolder, scheme: str) -> None:
    with Checkpoint(source.path):
        config = read_decoder_config(source.path)
    require_preparable(source, scheme)
    schemes = find_schemes(scheme)
    if not schemes.default.as_stored:
        schemes.check({**config.linear_layers(), HEAD: config.hidden_size})
