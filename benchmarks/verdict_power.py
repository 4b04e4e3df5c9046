"""Can the verdict say yes and no? FP16 against itself, honest and with planted weight noise, over seeds.

    python benchmarks/verdict_power.py --seeds 20 --sigma 0.2 --output benchmarks/results/verdict_power.json

Each run is the bundled suite `self-check` under the policy `self-check`, as a process of its own. The power that the
margins were chosen for is computed beforehand in docs/statistics.md.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sigma", type=float, default=0.2, help="planted noise, in standard deviations of each weight")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()

    document: dict[str, Any] = {"seeds": arguments.seeds, "sigma": arguments.sigma, "runs": []}
    for seed in range(arguments.seeds):
        for planted in (False, True):
            run = run_once(seed, arguments.sigma if planted else None)
            document["runs"].append(run)
            print(
                f"seed {seed:2d} {'planted' if planted else 'honest':8s} {run['verdict']:20s} {run['why']}", flush=True
            )
    document["counts"] = {
        kind: dict(Counter(run["verdict"] for run in document["runs"] if run["planted"] is (kind == "planted")))
        for kind in ("honest", "planted")
    }
    print(json.dumps(document["counts"], indent=2))
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(document, indent=2) + "\n")


def run_once(seed: int, sigma: float | None) -> dict[str, Any]:
    """One run of the suite; its verdict and the rules that did not pass."""
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-m", "quantgate", "run", "self-check", "--json", "--seed", str(seed)]
        command += ["--results", results]
        if sigma is not None:
            command += ["--plant-weight-noise", f"candidate={sigma}"]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if not finished.stdout:
        raise SystemExit(f"{' '.join(command)} ended with {finished.returncode}:\n{finished.stderr}")
    verdict = json.loads(finished.stdout)
    arm = verdict["arms"]["candidate"]
    open_rules = {rule["rule"]: rule["outcome"] for rule in arm["rules"] if rule["outcome"] != "pass"}
    return {
        "seed": seed,
        "planted": sigma is not None,
        "verdict": arm["verdict"],
        "exit_code": finished.returncode,
        "why": open_rules,
        "rules": {rule["rule"]: [rule["estimate"], *rule["interval"], rule["margin"]] for rule in arm["rules"]},
    }


if __name__ == "__main__":
    main()
