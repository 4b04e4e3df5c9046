"""Which of the known models are in the cache, and whole."""

from __future__ import annotations

from quantgate.doctor.check import Check
from quantgate_engine.errors import QuantgateError
from quantgate_engine.model.catalog import cached_folder, resolve_model
from quantgate_engine.model.known_models import KNOWN_MODELS


def model_checks() -> list[Check]:
    return [_model(name) for name in KNOWN_MODELS]


def _model(name: str) -> Check:
    label = f"model {name}"
    folder = cached_folder(name)
    if folder is None:
        advice = f"quantgate fetch {name} ({KNOWN_MODELS[name].summary}); `quantgate run` fetches it too"
        return Check(label, "missing", "not in the cache yet", advice=advice)
    try:
        model = resolve_model(name)
    except QuantgateError as error:
        return Check(label, "missing", "damaged", required=True, advice=str(error))
    return Check(label, "ok", f"{model.path}, weights {model.weights_sha256[:12]}")
