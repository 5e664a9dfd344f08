"""The code of the guide, of the README and of the package's README."""

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
