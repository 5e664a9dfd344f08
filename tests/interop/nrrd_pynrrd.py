"""NRRD files exchanged with pynrrd.

usage: nrrd_pynrrd.py write FOLDER    NAME.nrrd or NAME.nhdr by pynrrd, each with NAME.npy ([t, z, y, x] or [z, y, x]) and NAME.txt (the
                                      affine, three rows of four numbers, LPS mm)
       nrrd_pynrrd.py check FOLDER    compares every NAME.nrrd with NAME.npy and NAME.txt
"""

import pathlib
import sys

import nrrd
import numpy as np

SIGNS = {"left-posterior-superior": (1, 1, 1), "RAS": (-1, -1, 1), "left-anterior-superior": (1, -1, 1)}
# Rows are the directions of x, y and z.
TURNED = np.array([[0, 0.5, 0], [-2, 0, 0], [0, 0, 3.0]])
ORIGIN = np.array([10, -20, 30.5])


def save(folder, name, data, *, space="left-posterior-superior", encoding="gzip", ending="nrrd", axes="xyz", **more):
    """Data [x, y, z], or with t (list) or c (complex) where `axes` says so."""
    rows = {axis: row for axis, row in zip("xyz", TURNED)}
    kinds = {"t": "list", "c": "complex"}
    header = {
        "space": space,
        "space directions": np.array([rows.get(axis, [np.nan] * 3) for axis in axes]),
        "space origin": ORIGIN,
        "kinds": [kinds.get(axis, "domain") for axis in axes],
        "encoding": encoding,
        **more,
    }
    nrrd.write(str(folder / f"{name}.{ending}"), data, header)
    stored = data
    if "c" in axes:
        stored, axes = data[0] + 1j * data[1], axes[1:]
    order = [axes.index(axis) for axis in ("tzyx" if "t" in axes else "zyx")]
    kind = np.complex64 if np.iscomplexobj(stored) else np.float32
    np.save(folder / f"{name}.npy", np.ascontiguousarray(stored.transpose(order)).astype(kind))
    affine = np.column_stack([TURNED.T, ORIGIN]) * np.array(SIGNS[space])[:, None]
    np.savetxt(folder / f"{name}.txt", affine)


def write(folder):
    rng = np.random.default_rng(1)
    for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
        data = (rng.random((5, 4, 3)) * 100).astype(kind)
        for encoding in ("raw", "gzip", "ascii"):
            save(folder, f"{kind}_{encoding}", data, encoding=encoding)
        save(folder, f"big_{kind}", data.astype(">" + kind), encoding="raw")
    data = rng.random((6, 5, 4)).astype("f4")
    for space in SIGNS:
        save(folder, f"space_{space}", data, space=space)
    save(folder, "detached_raw", data, ending="nhdr", encoding="raw")
    save(folder, "detached_gzip", data, ending="nhdr", encoding="gzip")
    save(folder, "series_last", rng.random((4, 3, 2, 5)).astype("f4"), axes="xyzt")
    save(folder, "series_first", rng.random((5, 4, 3, 2)).astype("f4"), axes="txyz")
    save(folder, "complex", rng.random((2, 4, 3, 2)).astype("f4"), axes="cxyz")
    save(folder, "complex_series", rng.random((2, 4, 3, 2, 3)).astype("f8").astype("f4"), axes="cxyzt")
    save(folder, "one", rng.random((1, 1, 1)).astype("f4"))


def check(folder):
    count = 0
    for path in sorted(folder.glob("*.nrrd")):
        values, header = nrrd.read(str(path))
        expected = np.load(path.with_suffix(".npy"))
        kinds = header["kinds"]
        if kinds[0] == "complex":
            values = values[0] + 1j * values[1]
        assert np.array_equal(values.T, expected), path.name
        assert kinds == ["complex"] * np.iscomplexobj(expected) + ["domain"] * 3 + ["list"] * (expected.ndim - 3), kinds
        assert header["space"] == "left-posterior-superior" and header["space units"] == ["mm"] * 3, header
        rows = [row for row in header["space directions"] if row is not None and not np.isnan(row).any()]
        affine = np.column_stack([np.array(rows).T, header["space origin"]])
        assert np.allclose(affine, np.loadtxt(path.with_suffix(".txt")), rtol=0, atol=1e-9), path.name
        count += 1
    assert count == 12, count


{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
