"""A suite made of two or more servers and a log, for who has no suite file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from quantgate.arms.servers_in_flags import flag_of_servers, named_servers
from quantgate.locations import Location
from quantgate.problem import first_problem
from quantgate.run.usual_quality import USUAL_ITEMS, usual_quality
from quantgate.suite import LoadedSuite, Suite, WorkloadConfig
from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ServerArms:
    """What the command line says of the servers. `candidates` are URLs, or ID=URL; launch commands go by position."""

    baseline: str
    candidates: Sequence[str]
    tokenizer: str | None = None
    served_model: str | None = None
    api: Literal["auto", "chat", "completions"] = "auto"
    key_env: str = "OPENAI_API_KEY"
    launch_baseline: str | None = None
    launch_candidates: Sequence[str] = ()
    one_at_a_time: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def server_suite(
    servers: ServerArms, workload: WorkloadConfig, policy: str, *, seed: int, quality_items: int = USUAL_ITEMS
) -> LoadedSuite:
    """Raises ConfigurationError where the parts do not make a suite."""
    if servers.launch_candidates and len(servers.launch_candidates) != len(servers.candidates):
        raise ConfigurationError(
            f"{len(servers.launch_candidates)} --launch-candidate for {len(servers.candidates)} --candidate; give one "
            "for each, in the same order."
        )
    launched: Sequence[str | None] = servers.launch_candidates or [None] * len(servers.candidates)
    commands = [servers.launch_baseline, *launched]
    names = named_servers(servers.baseline, servers.candidates)
    document = {
        "schema": "quantgate.suite/1",
        "name": "servers",
        "description": "Servers under a request log, from the command line.",
        "tokenizer": servers.tokenizer,
        "seed": seed,
        "device": "one_at_a_time" if servers.one_at_a_time else "shared",
        "arms": [
            _arm(servers, arm_id, url, command, role="candidate" if position else "baseline")
            for position, ((arm_id, url), command) in enumerate(zip(names, commands, strict=True))
        ],
        "workload": workload.model_dump(mode="json"),
        "quality": usual_quality(quality_items).model_dump(),
        "policy": policy,
    }
    try:
        suite = Suite.model_validate(document)
    except ValidationError as error:
        problem = first_problem(error, document, Suite)
    else:
        return LoadedSuite(suite, Path("command-line.yaml"))
    raise ConfigurationError(f"{_flag(problem.location)}: {problem.message}.")


def _flag(location: Location) -> str:
    """What the user wrote that became this part of the suite."""
    if not location:
        return "The command line"
    return flag_of_servers(location) or f"--{str(location[-1]).replace('_', '-')}"


def _arm(servers: ServerArms, arm_id: str, url: str, command: str | None, *, role: str) -> dict[str, Any]:
    return {
        "target": "openai",
        "id": arm_id,
        "role": role,
        "url": url,
        "model": servers.served_model,
        "api": servers.api,
        "key_env": servers.key_env,
        "launch": None if command is None else {"command": command},
        **servers.extra,
    }
