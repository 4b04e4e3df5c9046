"""quantgate beside the engines that a user would pick on a CPU: first token, decode, and a batch, width by width.

    python benchmarks/peers/set_up.py                              # once
    python benchmarks/peers/compare.py --output results/peers.json
    python benchmarks/peers/compare.py --in-small --no-quality     # a minute or two: does everything run?
    python benchmarks/peers/compare.py --widths 8 --schemes 8=int8-w8a16 --engines quantgate openvino-genai

Every engine gets the same token ids and the same number of threads, one at a time, once per round. README.md beside
this script says how to read the tables. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

# The modules beside this script are read as parts of `benchmarks`, by the tests too.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.output_file import output_file
from benchmarks.peers.arms import arms_of_width, start_arm
from benchmarks.peers.bars import FULL_BITS, Width, width_of
from benchmarks.peers.catalog import ENGINES
from benchmarks.peers.document import comparison
from benchmarks.peers.engines.quantgate import DESCRIPTION, MODEL
from benchmarks.peers.peers_folder import PeersFolder
from benchmarks.peers.printed import print_comparison
from benchmarks.peers.rounds import ArmResult, Settings, measure_arms
from benchmarks.peers.workload import Workload, read_workload
from rich.console import Console

from quantgate.environment import package_versions
from quantgate.machine import cpu_name, instruction_sets, memory_bytes, usable_cores
from quantgate_kernels.cache_root import cache_root

QUALITY = Path(__file__).with_name("quality.py")
SCHEMES = {16: ("fp16",), 8: ("int8-w8a8", "int8-w8a16"), 4: ("int4-g64",)}
"""Of each width; the first stands for quantgate, the others are shown beside it."""

TABLE_WIDTH = 180
"""Characters; narrower terminals wrap the lines, which is easier to read than columns of three characters."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    folder = PeersFolder(options.folder.resolve())
    workload = read_workload()
    if options.in_small:
        workload = workload.in_small()
    cpus = options.cpus or usable_cpus()[: options.threads]
    settings = Settings(
        workload=workload,
        rounds=1 if options.in_small else options.rounds,
        threads=options.threads,
        cpus=cpus,
        models=str(folder.models),
        timeout_s=options.timeout_s,
    )
    schemes = {bits: options.schemes.get(bits, SCHEMES[bits]) for bits in options.widths}
    quality = None
    if not options.no_quality and "quantgate" in options.engines:
        tell("comparing quantgate's distributions with fp32's")
        quality = _quality([name for names in schemes.values() for name in names], options)
    widths: list[Width] = []
    shown: dict[int, list[ArmResult]] = {}
    document: dict[str, Any] = {}
    for bits in options.widths:
        # What narrower widths gain over 16 bits is measured in the same rounds.
        beside = () if bits == FULL_BITS else options.schemes.get(FULL_BITS, SCHEMES[FULL_BITS])[:1]
        arms = arms_of_width(bits, options.engines, (*schemes[bits], *beside))
        results = measure_arms(arms, settings, partial(start_arm, folder=folder, threads=options.threads), tell)
        shown[bits] = results
        widths.append(width_of(bits, results))
        document = _circumstances(settings) | comparison(widths, shown, quality)
        if options.output is not None:
            # After each width: an interruption loses one at most.
            options.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print_comparison(document, Console(width=TABLE_WIDTH))
    if not any(result.ran for results in shown.values() for result in results):
        sys.exit("No engine has any figures; the sentences above say why.")


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _quality(schemes: Sequence[str], options: argparse.Namespace) -> dict[str, Any] | None:
    """In a process that ends before anything is timed: torch's threads go with it."""
    command = [sys.executable, str(QUALITY), "--threads", str(options.threads), "--schemes", *schemes]
    command += ["--in-small"] if options.in_small else []
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode != 0:
        tell(f"The quality of quantgate's schemes could not be measured: exit code {ended.returncode}.")
        return None
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def _circumstances(settings: Settings) -> dict[str, Any]:
    workload: Workload = settings.workload
    return {
        "model": MODEL,
        "machine": {
            "cpu": cpu_name(),
            "cores": usable_cores(),
            "memory_bytes": memory_bytes(),
            "isa": instruction_sets(),
            "versions": package_versions(("quantgate", "torch", "transformers")),
        },
        "threads": settings.threads,
        "cpus": list(settings.cpus),
        "rounds": settings.rounds,
        "workload": {
            "single_prompt_tokens": len(workload.single_prompt),
            "single_output_tokens": workload.single_tokens,
            "batch_requests": len(workload.batch_prompts),
            "batch_prompt_tokens": sum(map(len, workload.batch_prompts)),
            "batch_output_tokens": workload.batch_output_tokens,
            "batch_active": workload.active,
        },
    }


def usable_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def _schemes_of_width(text: str) -> tuple[int, tuple[str, ...]]:
    bits, _, names = text.partition("=")
    schemes = tuple(name for name in names.split(",") if name)
    if not bits.isdecimal() or int(bits) not in SCHEMES or not schemes:
        raise argparse.ArgumentTypeError(f"{text!r} was given where a width and its schemes were expected: 8=int8-w8a8")
    for scheme in schemes:
        try:
            DESCRIPTION.precision(scheme)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return int(bits), schemes


def _cpus(text: str) -> list[int]:
    usable = usable_cpus()
    if not all(word.isdecimal() and int(word) in usable for word in text.split(",")):
        known = ",".join(map(str, usable))
        raise argparse.ArgumentTypeError(f"{text!r} was given where numbers of processors were expected, of {known}")
    return [int(word) for word in text.split(",")]


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} was given where a whole number from 1 on was expected")
    return int(text)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES), metavar="NAME")
    parser.add_argument("--widths", nargs="+", type=int, choices=list(SCHEMES), default=list(SCHEMES), metavar="BITS")
    parser.add_argument(
        "--schemes",
        nargs="+",
        type=_schemes_of_width,
        default=[],
        metavar="BITS=SCHEME,...",
        help="quantgate's schemes of a width; the first stands for it",
    )
    parser.add_argument("--rounds", type=_at_least_one, default=5)
    parser.add_argument("--threads", type=_at_least_one, default=2)
    parser.add_argument(
        "--cpus", type=_cpus, help="processors of all engines; default: the first usable ones, one a thread"
    )
    parser.add_argument("--timeout-s", type=float, default=600.0, help="for each answer of an engine, loading included")
    parser.add_argument("--folder", type=Path, default=cache_root() / "peers", help="where set_up.py put the peers")
    parser.add_argument("--in-small", action="store_true", help="few tokens, one round: to try the machinery")
    parser.add_argument(
        "--no-quality", action="store_true", help="without the comparison with fp32; no bar counts then"
    )
    parser.add_argument("--output", type=output_file, help="where the JSON document goes")
    options = parser.parse_args(arguments)
    options.schemes = dict(options.schemes)
    return options


if __name__ == "__main__":
    main()
