"""Arms on the bundled engine: one model, several precisions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quantgate.locations import Location
from quantgate.setup_files.policy_text import as_yaml
from quantgate.setup_files.project import inside_project

DEFAULT_SCHEMES = ("fp16", "int8-w8a16", "int4-g64")


@dataclass(frozen=True, slots=True)
class BundledArms:
    """schemes: the baseline's first."""

    model: str
    schemes: tuple[str, ...] = DEFAULT_SCHEMES

    def suite_lines(self, project: Path) -> list[str]:
        roles = ["baseline", *["candidate"] * (len(self.schemes) - 1)]
        model = as_yaml(inside_project(self.model, project))
        arms = zip(self.schemes, roles, strict=True)
        return [
            f"model: {model} # known name, Hugging Face folder or id, or GGUF file",
            "arms:",
            *(f"  - {{scheme: {as_yaml(scheme)}, role: {role}}}" for scheme, role in arms),
            "engine: {max_active_requests: 16, max_step_tokens: 256} # the same for every arm",
        ]

    def workload_lines(self) -> list[str]:
        return ["  output_lengths: forced # every arm decodes as many tokens as the log says; or natural"]

    def policy_notes(self) -> list[str]:
        return []

    def flag_of(self, location: Location) -> str | None:
        return {"arms": "--schemes", "model": "--model"}.get(str(location[0])) if location else None

    @property
    def key_variables(self) -> tuple[str, ...]:
        return ()
