"""Pictures beside exact numbers and the command."""

import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

from rayspin import render, simulate


def command(folder, words):
    program = os.path.join(os.path.dirname(sys.executable), "rayspin")
    done = subprocess.run([program, *words.split()], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr


def picture(path):
    """The pixels of a PNG of 8-bit colours."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            columns, rows, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) == (8, 2)
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(rows, 1 + 3 * columns)
    pixels = np.zeros((rows + 1, columns + 1, 3), np.int64)
    for row, line in enumerate(lines):
        for column in range(columns):
            raw = line[1 + 3 * column : 4 + 3 * column].astype(np.int64)
            left, up, corner = pixels[row + 1, column], pixels[row, column + 1], pixels[row, column]
            guess = left + up - corner
            a, b, c = abs(guess - left), abs(guess - up), abs(guess - corner)
            paeth = np.where((a <= b) & (a <= c), left, np.where(b <= c, up, corner))
            add = [0 * left, left, up, (left + up) // 2, paeth][line[0]]
            pixels[row + 1, column + 1] = (raw + add) % 256
    return pixels[1:, 1:].astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("render")
    np.save(folder / "volume.npy", simulate.ct(matrix=(32, 32, 24), views=2, detector=(4, 4), lines=True).truth)
    return folder


@pytest.mark.parametrize(
    "draw,words,named",
    [
        (render.drr, "-m xray", {}),
        (render.drr, "-m xray --view left --perspective 30", {"view": "left", "perspective": np.pi / 6}),
        (render.mip, "-m mip --azimuth 30 --elevation -15", {"azimuth": np.pi / 6, "elevation": -np.pi / 12}),
        (render.drr, "-m xray --turntable 3 --width 40", {"turntable": 3, "width": 40}),
    ],
)
def test_numbers_are_those_of_the_command(folder, draw, words, named):
    command(folder, f"render volume.npy -o found.npy --size 48,40 --device cpu {words}")
    found = draw(np.load(folder / "volume.npy"), 1.0, size=(48, 40), device="cpu", **named)
    expected = np.load(folder / "found.npy")
    assert found.dtype == np.float32 and found.shape == ((3,) if "turntable" in named else ()) + (40, 48)
    assert np.allclose(found, expected.reshape(found.shape), rtol=1e-5, atol=1e-6) and found.max() > 0.01


@pytest.mark.parametrize(
    "draw,words,named",
    [
        (render.surface, "-m surface --iso 0.01", {"iso": 0.01}),
        (render.surface, "-m surface --colour 0.2,0.4,1 --background 1,1,1", {"colour": (0.2, 0.4, 1), "background": (1, 1, 1)}),
        (render.transfer, "-m volume --preset skin --view top", {"preset": "skin", "view": "top"}),
        (
            render.transfer,
            "-m volume --transfer points.txt",
            {"points": [(0.001, 1, 0, 0, 0), (0.02, 0, 1, 0, 0.2), (0.03, 0, 0, 1, 0.5)]},
        ),
    ],
)
def test_pictures_are_those_of_the_command(folder, draw, words, named):
    (folder / "points.txt").write_text("0.001 1 0 0 0\n0.02 0 1 0 0.2\n0.03 0 0 1 0.5\n")
    command(folder, f"render volume.npy -o found.png --size 24,20 --device cpu {words}")
    found = draw(np.load(folder / "volume.npy"), 1.0, size=(24, 20), device="cpu", **named)
    assert found.dtype == np.uint8 and found.shape == (20, 24, 3)
    np.testing.assert_array_equal(found, picture(folder / "found.png"))
    assert len(np.unique(found)) > 10


def test_line_integrals_have_the_length_of_the_voxels():
    volume = np.zeros((12, 20, 30), np.float64)
    volume[3:9, 5:15, 10:20] = 0.02
    for view, cells, size in [("front", 10, 0.5), ("left", 10, 1.0), ("top", 6, 2.0)]:
        found = render.drr(volume, (1.0, 0.5, 2.0), size=96, view=view, device="cpu")
        assert np.isclose(found.max(), 0.02 * cells * size, rtol=1e-5)
    water = render.drr(np.zeros((12, 20, 30), np.int16), 1.0, size=32, hu=True, device="cpu")
    assert np.isclose(water.max(), 0.0206 * 20, rtol=1e-5)


def test_wrong_options_are_refused():
    volume = np.zeros((4, 5, 6), np.float32)
    volume[2] = 1
    for call, error, words in [
        (lambda: render.drr(volume[0], 1.0), ValueError, r"volume: expected the axes \[z, y, x\]"),
        (lambda: render.drr(volume * 1j, 1.0), TypeError, "real"),
        (lambda: render.drr(volume * np.nan, 1.0), ValueError, "finite"),
        (lambda: render.drr(volume, -1.0), ValueError, "spacing"),
        (lambda: render.drr(volume, (1.0, 2.0)), TypeError, "spacing_mm"),
        (lambda: render.drr(volume, 1.0, colour=(1, 1, 1)), ValueError, "colour: expected render.surface"),
        (lambda: render.drr(volume, 1.0, output="a.png"), TypeError, "no option of render"),
        (lambda: render.drr(volume, 1.0, size=0), ValueError, "size"),
        (lambda: render.drr(volume, 1.0, view="inside"), ValueError, "front"),
        (lambda: render.surface(volume, 1.0, iso=float("inf")), ValueError, "iso"),
        (lambda: render.transfer(volume, 1.0, [(0, 1, 1, 1)]), ValueError, r"transfer: expected the axes \[point, 5\]"),
        (lambda: render.transfer(volume, 1.0, [(1, 1, 1, 1, 1), (0, 1, 1, 1, 1)]), ValueError, "transfer"),
        (lambda: render.transfer(volume, 1.0, [(0, 1, 1, 1, 1)], preset="bone"), ValueError, "preset"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_an_exception_of_progress_stops_a_picture():
    def stop(stage, step, steps):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        render.drr(np.ones((4, 5, 6)), 1.0, turntable=20, progress=stop, device="cpu")
    assert "turntable" in render.options() and "outputs" not in render.options()
