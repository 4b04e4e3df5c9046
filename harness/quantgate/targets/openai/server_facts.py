"""What a server tells about itself and the model that it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quantgate.targets.openai.endpoint import Endpoint
from quantgate.targets.openai.errors import EndpointError, one_line
from quantgate.targets.openai.model_choice import chosen_model
from quantgate.targets.openai.server_build import ServerBuild, build_in
from quantgate.targets.openai.surrogates import is_whole

_VERSION_PATHS: Mapping[str, tuple[str, str]] = {
    "vllm": ("/version", "version"),
    "sglang": ("/get_server_info", "version"),
    "llamacpp": ("/props", "build_info"),
    "quantgate": ("/version", "version"),
}
"""Owner of the models in /v1/models -> where that server tells its version, and under which key."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """model: the id that is asked. server: name and version, as far as told. build: what our own server adds."""

    model: str
    server: str | None = None
    build: ServerBuild | None = None


async def ask_server(endpoint: Endpoint) -> ServerFacts:
    """Raises EndpointError where the server cannot be used: not reachable, key refused, no such model."""
    wanted = endpoint.settings.model
    try:
        entries = _entries(await endpoint.get_json("/v1/models"))
    except EndpointError as error:
        # A server without a list of models can still be asked for one by name.
        if error.status in (404, 405) and wanted is not None:
            return ServerFacts(wanted)
        raise
    offered = [entry["id"] for entry in entries]
    model = chosen_model(endpoint.settings.url, wanted, offered)
    entry = next((entry for entry in entries if entry["id"] == model), {})
    build = build_in(entry)
    owner = str(entry.get("owned_by") or "") if build is None else "quantgate"
    return ServerFacts(model, await _server(endpoint, owner), build)


def _entries(document: Any) -> list[dict[str, Any]]:
    entries = document.get("data") if isinstance(document, dict) else None
    listed = entries if isinstance(entries, list) else []
    return [entry for entry in listed if isinstance(entry, dict) and _is_id(entry.get("id"))]


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and is_whole(value)


async def _server(endpoint: Endpoint, owner: str) -> str | None:
    if owner not in _VERSION_PATHS:
        return one_line(owner) or None
    path, key = _VERSION_PATHS[owner]
    try:
        document = await endpoint.get_json(path)
    except EndpointError:
        return owner
    version = document.get(key) if isinstance(document, dict) else None
    return f"{owner} {one_line(str(version))}" if version else owner
