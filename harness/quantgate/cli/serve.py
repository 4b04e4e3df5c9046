"""`quantgate serve`: the bundled engine behind OpenAI's interface."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from quantgate.cli.engine_flags import ENGINE_DEFAULTS, EngineFlags
from quantgate.cli.flag_groups import takes_flag_groups
from quantgate.cli.flag_values import finite
from quantgate.progress import ProgressReporter
from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError
from quantgate_kernels.kernel_set_names import KernelSetName

if TYPE_CHECKING:
    from quantgate.engine_settings.engine import EngineSettings
    from quantgate.locations import Location

SERVE_SCHEMA = "quantgate.serve/1"

_RATE = re.compile(r"(\d+)(?:/min)?")


@takes_flag_groups
def serve(
    model: Annotated[str, typer.Argument(help="Known name, Hugging Face folder or id, or GGUF file.")],
    *,
    scheme: Annotated[
        str | None,
        typer.Option(
            help="Quantization scheme, such as fp16, int8-w8a16 or int4-g64-gptq; left out: as stored for a quantized "
            "checkpoint, else fp16."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    served_model_name: Annotated[
        str | None, typer.Option(help="The model's name in requests; its own by default.")
    ] = None,
    engine: EngineFlags,
    max_context_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longest prompt plus answer; the model's limit by default.")
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option(min=1, help="Token slots of one KV block.", show_default=str(ENGINE_DEFAULTS.block_size)),
    ] = None,
    num_kv_blocks: Annotated[
        int | None, typer.Option(min=1, help="Blocks of the KV cache; by default for all active requests.")
    ] = None,
    kv_memory_share: Annotated[
        float | None, typer.Option(help="Part of the memory left on a GPU that the KV cache takes.", callback=finite)
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Compute threads.")] = None,
    kernel_set: Annotated[
        KernelSetName | None, typer.Option(help="Kernels to compute with.", show_default=ENGINE_DEFAULTS.kernel_set)
    ] = None,
    api_key_env: Annotated[
        list[str] | None,
        typer.Option(help="Environment variable with the key that clients must send (commas separate several)."),
    ] = None,
    rate_limit: Annotated[str | None, typer.Option(help="Requests of one key, such as 600/min.")] = None,
    max_body_bytes: Annotated[int, typer.Option(min=1, help="Largest body of a request.")] = 8 * 1024 * 1024,
    max_queue: Annotated[int, typer.Option(min=0, help="Requests that may wait for their turn.")] = 256,
    request_timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds that one request may take.", callback=finite)
    ] = 600.0,
    drain_seconds: Annotated[
        float,
        typer.Option(
            min=0.0, help="Seconds that running requests have once the server is told to stop.", callback=finite
        ),
    ] = 30.0,
    default_max_tokens: Annotated[int, typer.Option(min=1, help="Limit of chat answers that state none.")] = 1024,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws of requests that state none.")] = 0,
    json_output: Annotated[
        bool, typer.Option("--json", help="One JSON line on standard output when the server is ready.")
    ] = False,
) -> None:
    """Serve a model through OpenAI's interface until it is told to stop (SIGTERM or Ctrl-C).

    Example: quantgate serve smollm2-135m-instruct --scheme int4-g64 --port 8001
    """
    api_keys = _api_keys(api_key_env or [])
    requests_per_minute = _requests_per_minute(rate_limit)
    console = Console(stderr=True)
    if not api_keys and not _is_loopback(host):
        _tell(console, f"Warning: {host} is open to the network and there is no API key; set one with --api-key-env.")

    from quantgate.engine_settings.loading import load_engine
    from quantgate_engine.server.app import create_app
    from quantgate_engine.server.serve import bind, url_of
    from quantgate_engine.server.serve import serve as run_server
    from quantgate_engine.server.settings import ServerSettings

    settings = engine.settings(
        max_context_tokens=max_context_tokens,
        block_size=block_size,
        num_kv_blocks=num_kv_blocks,
        kv_memory_share=kv_memory_share,
        threads=threads,
        kernel_set=kernel_set,
    )
    _refuse_timeouts(engine.engine, settings)
    with bind(host, port) as listening:
        loaded = load_engine(model, scheme, settings, progress=ProgressReporter(console))
        info = loaded.llm.info
        _tell_context_limit(console, settings.max_context_tokens, loaded.core.max_sequence_tokens)
        server = ServerSettings(
            served_name=served_model_name or info.name,
            api_keys=api_keys,
            requests_per_minute=requests_per_minute,
            max_body_bytes=max_body_bytes,
            max_queue=max_queue,
            request_timeout_s=request_timeout,
            drain_s=drain_seconds,
            default_max_tokens=default_max_tokens,
            seed=seed,
        )
        url = url_of(listening)

        def ready() -> None:
            _tell(console, f"serving on {url} ({server.served_name}, {info.scheme})")
            if json_output:
                line = {"schema": SERVE_SCHEMA, "url": url, "model": server.served_name, "scheme": info.scheme}
                typer.echo(json.dumps(line))

        def draining(waiting: int) -> None:
            _tell(console, _farewell(waiting, drain_seconds))

        run_server(create_app(loaded.llm, server, core=loaded.core), listening, ready, draining)


def _refuse_timeouts(file: Path | None, settings: EngineSettings) -> None:
    """Only a file can state them."""
    stated: list[Location] = [("timeouts",)] if "timeouts" in settings.model_fields_set else []
    for number, pool in enumerate(settings.pools):
        if "timeouts" in pool.engine.model_fields_set:
            stated.append(("pools", number, "engine", "timeouts"))
    if file is not None and stated:
        from quantgate.validation import place_in

        raise ConfigurationError(
            f"{place_in(file, stated[0])}: a server has --request-timeout and --drain-seconds for that; remove it."
        )


def _tell_context_limit(console: Console, asked: int | None, served: int) -> None:
    if asked is not None and asked > served:
        _tell(
            console,
            f"Note: max_context_tokens is {asked:,}, but num_kv_blocks or max_kv_tokens leave a request {served:,} "
            "tokens; longer ones are refused.",
        )


def _farewell(waiting: int, drain_seconds: float) -> str:
    if not waiting:
        return "stopping: no request is running"
    return f"stopping: up to {drain_seconds:g} s for {counted(waiting, 'answer')} to end; a second signal gives them up"


def _api_keys(names: list[str]) -> tuple[str, ...]:
    keys: list[str] = []
    for name in names:
        given = [key.strip() for key in os.environ.get(name, "").split(",") if key.strip()]
        if not given:
            raise ConfigurationError(
                f"--api-key-env names {name}, which is not set or empty; put the key into that environment variable."
            )
        keys += given
    return tuple(keys)


def _requests_per_minute(text: str | None) -> int | None:
    if text is None:
        return None
    match = _RATE.fullmatch(text.strip())
    if match is None or int(match[1]) < 1:
        raise ConfigurationError(f"--rate-limit is {text!r}; expected requests per minute, such as 600/min.")
    return int(match[1])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tell(console: Console, message: str) -> None:
    console.print(message, markup=False, highlight=False, soft_wrap=True)
