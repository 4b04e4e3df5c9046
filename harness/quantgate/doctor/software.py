"""Python, the libraries, pip, the compiler and the browser."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from collections.abc import Iterable
from importlib.metadata import metadata, requires, version

from packaging.requirements import Requirement

from quantgate.doctor.check import Check
from quantgate.environment import package_versions
from quantgate_kernels.cpu.compiler import find_compiler
from quantgate_kernels.unavailable import KernelSetUnavailableError

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_DRIVERS = ("chromedriver", "chromium.chromedriver")


def python_check() -> Check:
    wanted = metadata("quantgate")["Requires-Python"]
    return Check("Python", "ok", f"{platform.python_version()} ({sys.executable}), {wanted} is needed", required=True)


def library_checks() -> list[Check]:
    """One check for each library that the distribution itself requires."""
    return [_library(Requirement(text)) for text in requires("quantgate") or [] if "extra ==" not in text]


def pip_check() -> Check:
    if importlib.util.find_spec("pip") is None:
        return Check(
            "pip", "missing", "not in this environment", advice="python -m ensurepip (fetch downloads with it)"
        )
    return Check("pip", "ok", version("pip"))


def compiler_check() -> Check:
    try:
        compiler = find_compiler()
    except KernelSetUnavailableError as unavailable:
        advice = "without one the arms run on the slower kernels of torch"
        return Check("C++ compiler", "missing", str(unavailable), advice=advice)
    return Check("C++ compiler", "ok", f"{' '.join(compiler.command)}, {compiler.version.splitlines()[0]}")


def compiled_kernels_check() -> Check:
    """Builds the kernels where the cache lacks them, as the first run would."""
    from quantgate_kernels.cpu.build import build_library
    from quantgate_kernels.cpu.library import bind

    try:
        library = build_library()
        bind(library)
    except KernelSetUnavailableError as unavailable:
        advice = "the arms run on the slower kernels of torch"
        return Check("compiled kernels", "missing", str(unavailable), advice=advice)
    return Check("compiled kernels", "ok", str(library))


def browser_check() -> Check:
    browser, driver = _first_program(BROWSERS), _first_program(BROWSER_DRIVERS)
    if browser is None or driver is None:
        return Check(
            "Chromium",
            "missing",
            "no browser" if browser is None else "no driver",
            advice="install chromium and its driver (Debian: chromium-driver); only the report's tests need it",
        )
    return Check("Chromium", "ok", f"{browser}, {driver}")


def _library(requirement: Requirement) -> Check:
    installed = package_versions((requirement.name,)).get(requirement.name)
    if installed is None:
        return Check(
            requirement.name, "missing", "not installed", required=True, advice=f'python -m pip install "{requirement}"'
        )
    if not requirement.specifier.contains(installed, prereleases=True):
        return Check(
            requirement.name,
            "missing",
            f"{installed}, {requirement.specifier} is needed",
            required=True,
            advice=f'python -m pip install "{requirement}"',
        )
    return Check(requirement.name, "ok", installed, required=True)


def _first_program(names: Iterable[str]) -> str | None:
    return next((path for name in names if (path := shutil.which(name)) is not None), None)
