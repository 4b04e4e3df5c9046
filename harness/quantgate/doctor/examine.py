"""All that the doctor looks at, in the order in which it tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quantgate.doctor import hardware, software
from quantgate.doctor.check import Check
from quantgate.doctor.kernel_paths import SchemePaths, probe_kernel_paths
from quantgate.doctor.models import model_checks

DOCTOR_SCHEMA = "quantgate.doctor/1"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    checks: list[Check]
    kernels: list[SchemePaths]

    @property
    def healthy(self) -> bool:
        """Whether nothing is missing that quantgate cannot work without."""
        return not any(check.blocks for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": DOCTOR_SCHEMA,
            "healthy": self.healthy,
            "checks": [check.to_json() for check in self.checks],
            "kernels": [paths.to_json() for paths in self.kernels],
        }


def examine() -> Diagnosis:
    libraries = software.library_checks()
    checks = [software.python_check(), *libraries, software.pip_check(), software.compiler_check()]
    checks += [hardware.cpu_check(), hardware.memory_check(), hardware.disk_check(), software.browser_check()]
    if any(check.blocks for check in libraries):
        # Without its libraries neither a model nor a kernel can be looked at; the advice above comes first.
        return Diagnosis(checks, [])
    checks += [software.compiled_kernels_check(), hardware.thread_check(), hardware.gpu_check(), *model_checks()]
    return Diagnosis(checks, probe_kernel_paths())
