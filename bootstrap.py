"""Sets up quantgate in `.venv` beside this file and runs it or its tests.

    python3 bootstrap.py run [arguments of `quantgate run`]
    python3 bootstrap.py test [arguments of pytest]

Needs Python 3.11 or newer with its venv module, and nothing else. The set-up is done once, and again when the
project's dependencies change.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
STAMP = ENVIRONMENT / "quantgate-setup.json"
PIP_LOG = ENVIRONMENT / "quantgate-pip.log"
PYPROJECT = ROOT / "pyproject.toml"
CONSTRAINTS = ROOT / "constraints-cpu.txt"
OLDEST_PYTHON = (3, 11)
USAGE_EXIT_CODE = 2
SETUP_EXIT_CODE = 3

STATIC_CHECKS = (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",))


class SetupError(Exception):
    """What is wrong and what to do, in one sentence."""


def main(arguments: list[str]) -> int:
    commands = {"run": run, "test": test}
    if not arguments or arguments[0] not in commands:
        print(__doc__.strip(), file=sys.stderr)
        return USAGE_EXIT_CODE
    try:
        return commands[arguments[0]](arguments[1:])
    except SetupError as error:
        print(f"bootstrap: {error}", file=sys.stderr)
        return SETUP_EXIT_CODE
    except KeyboardInterrupt:
        print("bootstrap: interrupted; the same command goes on where it was.", file=sys.stderr)
        return 130


def run(arguments: list[str]) -> int:
    set_up(extras=())
    program = ENVIRONMENT / "bin" / "quantgate"
    sys.stderr.flush()
    # The process becomes quantgate, so that signals and the exit code are quantgate's own.
    os.execv(program, [str(program), "run", *arguments])


def test(arguments: list[str]) -> int:
    set_up(extras=("dev",))
    failed = [" ".join(check) for check in STATIC_CHECKS if not _passes(check)]
    tests = subprocess.run([PYTHON, "-m", "pytest", *arguments], cwd=ROOT, check=False)
    if failed:
        print(f"bootstrap: failed before the tests: {', '.join(failed)}", file=sys.stderr)
    return tests.returncode or (1 if failed else 0)


def _passes(check: tuple[str, ...]) -> bool:
    print(f"bootstrap: {' '.join(check)}", file=sys.stderr, flush=True)
    return subprocess.run([PYTHON, "-m", *check], cwd=ROOT, check=False).returncode == 0


def set_up(extras: tuple[str, ...]) -> None:
    """Makes the environment where it is missing, or installs again where what it was made from has changed."""
    _require_python()
    wanted = _inputs_hash()
    made = _read_stamp()
    if made.get("inputs") == wanted and set(extras) <= set(made.get("extras", [])) and PYTHON.exists():
        return
    if not PYTHON.exists():
        _make_environment()
    # An environment that has extras keeps them: `run` after `test` must not take the tests' tools away from the stamp.
    extras = tuple(sorted({*extras, *made.get("extras", [])}))
    _install(extras)
    STAMP.write_text(json.dumps({"inputs": wanted, "extras": list(extras)}), encoding="utf-8")


def _require_python() -> None:
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(
            f"Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed and this is {sys.version.split()[0]}; "
            "start bootstrap.py with a newer one, such as python3.11."
        )
    missing = [module for module in ("venv", "ensurepip") if importlib.util.find_spec(module) is None]
    if missing:
        raise SetupError(
            f"this Python has no {' and no '.join(missing)} module, which makes environments; "
            "install it (Debian and Ubuntu: apt-get install python3-venv) and start again."
        )


def _make_environment() -> None:
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    print(f"bootstrap: making {ENVIRONMENT}", file=sys.stderr, flush=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(ENVIRONMENT)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        raise SetupError(f"the environment {ENVIRONMENT} could not be made: {_last_line(made.stdout)}")


def _install(extras: tuple[str, ...]) -> None:
    print("bootstrap: installing (once; about a minute with a fast network)", file=sys.stderr, flush=True)
    STAMP.unlink(missing_ok=True)
    project = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    command = [PYTHON, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--constraint", CONSTRAINTS, "--editable", project]
    with PIP_LOG.open("w", encoding="utf-8") as log:
        installed = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False)
    if installed.returncode != 0:
        raise SetupError(
            f"pip could not install the project ({_cause(PIP_LOG)}); its output is in {PIP_LOG}; "
            "check the network, pip's settings and the free space (3 GB), then start the same command again."
        )


def _inputs_hash() -> str:
    digest = hashlib.sha256()
    for part in (PYPROJECT.read_bytes(), CONSTRAINTS.read_bytes(), str(ROOT).encode()):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _read_stamp() -> dict:
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _cause(log: Path) -> str:
    """The last line in which pip names an error, else its last line."""
    text = log.read_text(encoding="utf-8", errors="replace")
    errors = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR:")]
    return errors[-1].rstrip(".") if errors else _last_line(text)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "it gave no reason"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
