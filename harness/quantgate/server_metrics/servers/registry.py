"""The servers whose names we know."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.server_metrics.servers.llama_cpp import LLAMA_CPP
from quantgate.server_metrics.servers.quantgate import QUANTGATE
from quantgate.server_metrics.servers.server_names import ServerNames
from quantgate.server_metrics.servers.sglang import SGLANG
from quantgate.server_metrics.servers.tgi import TGI
from quantgate.server_metrics.servers.vllm import VLLM

KNOWN_SERVERS = (VLLM, SGLANG, LLAMA_CPP, TGI, QUANTGATE)


def recognise(names: Iterable[str]) -> ServerNames | None:
    """The server whose prefix any of these metric names begins with; None for one that we do not know."""
    seen = list(names)
    return next((server for server in KNOWN_SERVERS if any(name.startswith(server.prefix) for name in seen)), None)
