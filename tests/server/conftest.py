"""A tiny random model over bytes, and a server for the tests of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.engine.byte_tokenizer import END, VOCABULARY, save_byte_tokenizer
from tests.engine.tiny_model import save_tiny_model
from tests.server.running import RunningServer

from quantgate_engine import LLM


@pytest.fixture(scope="session")
def byte_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the model and its tokenizer; the engine's cache lies beside it."""
    root = tmp_path_factory.mktemp("served")
    save_tiny_model(root / "tiny", vocab_size=VOCABULARY, eos_token_id=END, bos_token_id=None, num_hidden_layers=2)
    save_byte_tokenizer(root / "tiny")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUANTGATE_CACHE", str(root / "cache"))
        yield root / "tiny"


@pytest.fixture(scope="session")
def load(byte_model: Path) -> Callable[..., LLM]:
    """Loads the model; an engine serves one server at a time."""

    def load_with(**config: Any) -> LLM:
        return LLM(byte_model, "fp32", **{"max_active_requests": 4, "max_step_tokens": 32, "block_size": 4} | config)

    return load_with


@pytest.fixture(scope="module")
def server(load: Callable[..., LLM]) -> Iterator[RunningServer]:
    with RunningServer(load()) as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=30) as client:
        yield client
