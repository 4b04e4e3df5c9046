"""Every metric that a policy's gain can name."""

from __future__ import annotations

from quantgate.gate.gains.gain_metric import GainMetric
from quantgate.gate.gains.memory import MEMORY_GAINS
from quantgate.gate.gains.speed import SPEED_GAINS

GAIN_METRICS: dict[str, GainMetric] = {metric.name: metric for metric in (*MEMORY_GAINS, *SPEED_GAINS)}
