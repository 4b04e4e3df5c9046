"""Our own server, `quantgate serve`: it exports our names as they are."""

from __future__ import annotations

from quantgate.server_metrics.metric import SERVER_METRICS
from quantgate.server_metrics.servers.server_names import ServerNames, TheirName

QUANTGATE = ServerNames(
    "quantgate", "kv_cache_block_utilization", tuple(TheirName(name, name) for name in SERVER_METRICS)
)
