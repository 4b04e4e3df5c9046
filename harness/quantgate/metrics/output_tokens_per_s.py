"""Output throughput: output tokens that reached the driver / seconds of serving, for one arm's rows.

Under an open-loop schedule this follows the offered load; `decode_tok_s` measures what the arm can do.
"""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import floats
from quantgate.metrics.serving_seconds import serving_seconds


def output_tokens_per_s(requests: pa.Table) -> float | None:
    """Tokens per second; None where nothing was served."""
    seconds = serving_seconds(requests)
    return float(floats(requests, "output_tokens").sum()) / seconds if seconds > 0 else None
