"""Versions and flags of peers, a line each, for the heads of raw files: python benches/peers/versions.py NAME...

Names are those of the scripts beside this one, which know their peers by the table below.
"""

import ctypes
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[2] / ".tools" / "bench"
PEERS = {
    "cardiac": ["sigpy", "bart", "finufft"],
    "file_to_file": ["sigpy", "bart"],
    "fft": ["scipy", "fftw", "ducc0"],
    "filters": ["opencv"],
    "histogram": ["opencv"],
    "ladders_cpu": ["numpy", "opencv"],
    "nufft": ["finufft", "ducc0"],
    "scaling": ["finufft", "scipy"],
    "scans": ["sigpy", "bart"],
    "subspace": ["bart", "finufft"],
    "type3": ["finufft", "ducc0"],
}


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip()


def compiler():
    return said("g++", "--version").splitlines()[0]


def fftw_libraries():
    """FFTW's single precision and its threads: compiled here where `build.sh` did so, else the system's."""
    folder = TOOLS / "fftw" / "lib"
    names = ["libfftw3f.so.3", "libfftw3f_omp.so.3"]
    if (TOOLS / "fftw.made").exists():
        names = [str(folder / name) for name in names]
    return [ctypes.CDLL(name, ctypes.RTLD_GLOBAL) for name in names]


def fftw():
    library = fftw_libraries()[0]
    text = lambda name: ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, name))).decode()
    package = said("dpkg-query", "-W", "-f", "${Package} ${Version}", "libfftw3-single3")
    how = "compiled here" if (TOOLS / "fftw.made").exists() else package
    return f"FFTW {text('fftwf_version')} ({how}), {text('fftwf_cc')}"


def finufft():
    import finufft as module

    flags = TOOLS / "finufft.flags"
    how = f"{compiler()} {flags.read_text().strip()}" if flags.exists() else "not built by build.sh"
    return f"FINUFFT {module.__version__} ({os.path.relpath(pathlib.Path(module.__file__).parent, TOOLS.parents[1])}), {how}; its {fftw()}"


def ducc0():
    how = f"pip install --no-binary, {compiler()} -march=native" if (TOOLS / "ducc0.made").exists() else "not built by build.sh"
    return f"ducc0 {importlib.metadata.version('ducc0')}, {how}"


def bart():
    if not shutil.which("bart"):
        return "BART: not there"
    package = said("dpkg-query", "-W", "-f", "${Package} ${Version}", "bart")
    return f"BART {' '.join(said('bart', 'version', '-V').split())} ({package})"


def sigpy():
    with_numba = importlib.metadata.version("numba")
    return f"SigPy {importlib.metadata.version('sigpy')} (wheel), numba {with_numba}, which compiles for this processor"


def scipy():
    import scipy as module

    compiler_ = module.__config__.CONFIG["Compilers"]["c++"]
    return f"SciPy {module.__version__} (wheel, for any x86-64 processor): pocketfft, {compiler_['name']} {compiler_['version']}"


def numpy():
    import numpy as module

    blas = module.__config__.CONFIG["Build Dependencies"]["blas"]
    found = module.__config__.CONFIG["SIMD Extensions"].get("found", [])
    return f"NumPy {module.__version__} (wheel): {blas['name']} {blas['version']}, SIMD {' '.join(found)}"


def opencv():
    import cv2

    wanted = ("Baseline:", "Dispatched code generation:", "Parallel framework:", "Intel IPP:")
    lines = [" ".join(line.split()) for line in cv2.getBuildInformation().splitlines()]
    kept = [line for line in lines if line.startswith(wanted)]
    return f"OpenCV {cv2.__version__} (wheel): {'; '.join(kept)}; uses {cv2.getCPUFeaturesLine()}"


def main():
    for name in dict.fromkeys(peer for script in sys.argv[1:] for peer in PEERS[script]):
        print(f"# {globals()[name]()}")


if __name__ == "__main__":
    main()
