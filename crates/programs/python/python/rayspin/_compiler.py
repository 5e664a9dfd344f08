"""The compiler of CUDA kernels, NVRTC, where a package of PyPI brought it (torch and CuPy do)."""

import importlib.util
import os
import pathlib


def folders() -> list[str]:
    """The folders of the packages `nvidia-cuda-nvrtc-cu12`, `nvidia-cuda-nvrtc` and the like."""
    spec = importlib.util.find_spec("nvidia")
    places = list(spec.submodule_search_locations or []) if spec else []
    found = []
    for place in places:
        # Packages of CUDA 12 have a folder for each library, those of CUDA 13 one for all.
        for library in sorted(pathlib.Path(place).glob("*/lib/libnvrtc.so.*")):
            found.append(str(library.parent))
    return found


def name_it() -> None:
    """Adds the folders to those that RAYSPIN_CUDA_PATH names, where Rayspin looks after the system's own."""
    named = [folder for folder in os.environ.get("RAYSPIN_CUDA_PATH", "").split(":") if folder]
    more = [folder for folder in folders() if folder not in named]
    if more:
        os.environ["RAYSPIN_CUDA_PATH"] = ":".join(named + more)
