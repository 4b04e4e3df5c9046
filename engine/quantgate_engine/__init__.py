"""The bundled engine: paged KV cache, continuous batching, quantized weights. Importing it loads no torch."""

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.config import EngineConfig
from quantgate_engine.llm import LLM
from quantgate_engine.sampling_params import SamplingParams

__all__ = ["LLM", "AsyncLLM", "EngineConfig", "SamplingParams"]
