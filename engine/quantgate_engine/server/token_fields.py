"""Fields of a request that name tokens of the model."""

from __future__ import annotations

from quantgate_engine.server.protocol.generation import GenerationRequest
from quantgate_engine.server.service import Service


def check_token_fields(service: Service, body: GenerationRequest) -> None:
    """Raises ApiError 400, by the field's name, for a token that the model does not have."""
    service.check_token_ids(body.forced_token_ids, "forced_token_ids")
    service.check_token_ids(body.stop_token_ids, "stop_token_ids")
    service.check_token_ids([int(token_id) for token_id in body.logit_bias], "logit_bias")
