"""Files that travel with quantgate: suites, policies, tasks and replay samples."""

from __future__ import annotations

from pathlib import Path

from quantgate_engine.errors import ConfigurationError


def bundled_root() -> Path:
    """The folder that holds `suites/` and `replay_samples/`: inside an installed copy, or the repository's root."""
    installed = Path(__file__).parent / "bundled"
    return installed if installed.is_dir() else Path(__file__).parents[2]


def find_suite(name_or_path: str) -> Path:
    """A suite file by path, or a bundled suite by name (`quick`)."""
    return _find(name_or_path, bundled_root() / "suites", "suite")


def tasks_folder(suite_path: Path) -> Path:
    """The folder of task files: `tasks/` beside the suite where there is one, else the bundled tasks."""
    beside = suite_path.parent / "tasks"
    return beside if beside.is_dir() else bundled_root() / "suites" / "tasks"


def find_policy(name_or_path: str, beside: Path | None = None) -> Path:
    """A policy file by path (also relative to the folder `beside`), or a bundled policy by name (`mixed`)."""
    if beside is not None and (beside / name_or_path).is_file():
        return beside / name_or_path
    return _find(name_or_path, bundled_root() / "suites" / "policies", "policy")


def _find(name_or_path: str, folder: Path, kind: str) -> Path:
    path = Path(name_or_path)
    if path.is_file():
        return path
    bundled = folder / f"{name_or_path}.yaml"
    if bundled.is_file():
        return bundled
    known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
    raise ConfigurationError(
        f"{kind} {name_or_path!r} is neither a file nor a bundled {kind}; "
        f"give a path to a YAML file or one of: {known}."
    )
