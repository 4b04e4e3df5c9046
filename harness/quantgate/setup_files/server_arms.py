"""Arms that are servers: OpenAI-compatible endpoints that run already, or are launched for the run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quantgate.arms.servers_in_flags import flag_of_servers, named_servers
from quantgate.locations import Location
from quantgate.setup_files.policy_text import as_yaml
from quantgate.setup_files.project import inside_project

DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class ServerArms:
    """The servers by URL or ID=URL. served_model: its name on the servers; None: the only one that each lists."""

    baseline: str
    candidates: tuple[str, ...]
    served_model: str | None = None
    tokenizer: str | None = None
    key_variable: str = DEFAULT_KEY_VARIABLE

    def suite_lines(self, project: Path) -> list[str]:
        tokenizer = None if self.tokenizer is None else inside_project(self.tokenizer, project)
        (baseline, baseline_url), *candidates = named_servers(self.baseline, self.candidates)
        return [
            f"tokenizer: {as_yaml(tokenizer)} # known model, folder or Hub id; tiers that need token ids need it",
            "arms:",
            *self._arm_lines(baseline, "baseline", baseline_url),
            *(line for name, url in candidates for line in self._arm_lines(name, "candidate", url)),
            "device: shared # or one_at_a_time, where the device holds one server; each arm then needs its launch",
        ]

    def _arm_lines(self, arm_id: str, role: str, url: str) -> list[str]:
        return [
            f"  - id: {as_yaml(arm_id)}",
            f"    role: {role}",
            "    target: openai",
            f"    url: {as_yaml(url)}",
            f"    model: {as_yaml(self.served_model)} # its name on the server; null: the only one that it lists",
            f"    key_env: {as_yaml(self.key_variable)} # the environment variable that holds the key",
            '    # launch: {command: "vllm serve MODEL --port {port}"} # to start and stop the server with the run',
        ]

    def workload_lines(self) -> list[str]:
        return ["  output_lengths: auto # as the log says where every server can be made to, else natural"]

    def policy_notes(self) -> list[str]:
        return [
            "Builds that are served under different names differ in `model`: take it out of must_match, or run with",
            "--may-differ model, once you have made sure that they are builds of one model.",
            "A server that does not tell its weights' size brings no gain in weight_bytes: its gain is speed.",
        ]

    def flag_of(self, location: Location) -> str | None:
        return "--tokenizer" if location[:1] == ("tokenizer",) else flag_of_servers(location)

    @property
    def key_variables(self) -> tuple[str, ...]:
        return (self.key_variable,)
