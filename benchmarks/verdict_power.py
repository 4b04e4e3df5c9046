"""Can the verdict say yes and no? FP16 against itself, honest and with planted weight noise, over seeds.

    python benchmarks/verdict_power.py --seeds 20 --sigma 0.05 --output benchmarks/results/verdict_power.json

Each run is a process of its own: the suite beside this file under the bundled policy `self-check`, with two candidates
that are both the baseline's build, one of them damaged. The seed draws the requests and the bootstrap. The power that
the margins were chosen for is computed beforehand in docs/statistics.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

# `benchmarks` is found from the folder above, and a script has only its own on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.output_file import output_file

SUITE = Path(__file__).with_suffix(".yaml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--sigma", type=float, default=0.05, help="planted noise, in standard deviations of each weight"
    )
    parser.add_argument("--output", type=output_file)
    arguments = parser.parse_args()

    document: dict[str, Any] = {"sigma": arguments.sigma, "runs": []}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        run = run_once(seed, arguments.sigma)
        document["runs"].append(run)
        words = {arm_id: arm["verdict"] for arm_id, arm in run["arms"].items()}
        open_rules = {arm_id: arm["not_passed"] for arm_id, arm in run["arms"].items()}
        print(f"seed {seed:2d} {words} {open_rules}", flush=True)
    document["counts"] = {
        arm_id: dict(Counter(run["arms"][arm_id]["verdict"] for run in document["runs"]))
        for arm_id in ("honest", "planted")
    }
    print(json.dumps(document["counts"], indent=2))
    if arguments.output:
        arguments.output.write_text(json.dumps(document, indent=2) + "\n")


def run_once(seed: int, sigma: float) -> dict[str, Any]:
    """One run of the suite: each candidate's verdict and the rules that did not pass."""
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-m", "quantgate", "run", str(SUITE), "--json", "--seed", str(seed)]
        command += ["--results", results, "--plant-weight-noise", f"planted={sigma}"]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if not finished.stdout:
        raise SystemExit(f"{' '.join(command)} ended with {finished.returncode}:\n{finished.stderr}")
    verdict = json.loads(finished.stdout)
    return {"seed": seed, "exit_code": finished.returncode, "arms": {k: _arm(v) for k, v in verdict["arms"].items()}}


def _arm(arm: dict[str, Any]) -> dict[str, Any]:
    return {
        "verdict": arm["verdict"],
        "not_passed": {rule["rule"]: rule["outcome"] for rule in arm["rules"] if rule["outcome"] != "pass"},
        "rules": {rule["rule"]: [rule["estimate"], *rule["interval"], rule["margin"]] for rule in arm["rules"]},
    }


if __name__ == "__main__":
    main()
