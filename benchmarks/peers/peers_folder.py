"""Where the peers live: an environment each, and the bundled model in the form that each wants."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.description import EngineDescription


@dataclass(frozen=True, slots=True)
class PeersFolder:
    path: Path

    @property
    def models(self) -> Path:
        return self.path / "models"

    @property
    def stamps(self) -> Path:
        return self.path / "stamps"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def environment(self, name: str) -> Path:
        return self.path / "environments" / name

    def python(self, engine: EngineDescription) -> Path:
        """The interpreter of the engine's environment; this process's for an engine without one of its own."""
        if engine.environment is None:
            return Path(sys.executable)
        return self.environment(engine.environment) / "bin" / "python"
