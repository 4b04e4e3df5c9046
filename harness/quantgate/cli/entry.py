"""Entry point of the console script: Ctrl-C is answered from the start, while the libraries are still being read."""

from __future__ import annotations

from typing import NoReturn

from quantgate.cli.termination import interrupts_end_at_once


def main() -> NoReturn:
    interrupts_end_at_once()
    # Here and not above: it brings the libraries of every command, whose reading takes a second.
    from quantgate.cli.main import main as run_quantgate

    run_quantgate()
