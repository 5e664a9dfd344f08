"""The code of the guide, of the README and of the package's README."""

import lzma
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
PAGES = ["docs/python.md", "README.md", "crates/programs/python/README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path):
    if not (ROOT / page).is_file():
        pytest.skip("the pages are not here")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    program = pathlib.Path(sys.executable).parent / "rayspin"
    words = "simulate mri -o scan.h5 --matrix 64,64 -t radial --coils 4 --snr 50".split()
    subprocess.run([program, *words], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "image.nii.gz").is_file()


def test_the_code_of_the_guides_to_files_runs(tmp_path):
    page = ROOT / "docs/reading.md"
    data = pathlib.Path(os.environ.get("RAYSPIN_DATA", ROOT.parent / "shared" / "data")) / "mri" / "twix"
    if not page.is_file() or not data.is_dir():
        pytest.skip("the pages or the scans are not here")
    for ending, name in [("dat", "meas.dat"), ("seq", "scan.seq")]:
        packed = data / f"04_03_basic_epi_96x96_peplus.{ending}.xz"
        (tmp_path / name).write_bytes(lzma.decompress(packed.read_bytes()))
    pytest.importorskip("h5py")
    subprocess.run([sys.executable, ROOT / "tests/interop/fastmri.py", "write", tmp_path], check=True, capture_output=True)
    (tmp_path / "multicoil.h5").rename(tmp_path / "file1000001.h5")
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{block}\n{done.stderr}"
