"""Every engine, with the file of its adapter. Reading it imports no engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.description import EngineDescription
from benchmarks.peers.engines import (
    llama_cpp,
    onnxruntime_genai,
    openvino_genai,
    quantgate,
    transformers_continuous,
    transformers_generate,
    vllm_cpu,
)

OWN = "quantgate"


@dataclass(frozen=True, slots=True)
class CataloguedEngine:
    """adapter: the file that a worker in the engine's environment runs."""

    description: EngineDescription
    adapter: Path

    @property
    def name(self) -> str:
        return self.description.name


ENGINES = {
    module.DESCRIPTION.name: CataloguedEngine(module.DESCRIPTION, Path(str(module.__file__)))
    for module in (
        quantgate,
        openvino_genai,
        vllm_cpu,
        onnxruntime_genai,
        llama_cpp,
        transformers_generate,
        transformers_continuous,
    )
}

PEERS = {name: engine for name, engine in ENGINES.items() if name != OWN}
