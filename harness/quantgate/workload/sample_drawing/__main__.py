"""Writes quick.jsonl into the folder given: `python -m quantgate.workload.sample_drawing replay_samples`."""

from __future__ import annotations

import sys
from pathlib import Path

from quantgate.workload.sample_drawing.draw import draw_quick


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit("usage: python -m quantgate.workload.sample_drawing FOLDER (the folder that holds texts/)")
    folder = Path(arguments[0])
    (folder / "quick.jsonl").write_text(draw_quick(folder / "texts"), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
