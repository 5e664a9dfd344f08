"""NumPy files exchanged with numpy.

Element i, counted in C order, of an array of shape (2, 3, 4) is 7 i mod 13, minus 3 where the type is signed, plus
1j (i mod 5) where it is complex; booleans are i mod 2.

usage: npy_numpy.py write FOLDER    NAME.npy of every type, order and byte order; all of them in plain.npz, packed.npz
       npy_numpy.py check FOLDER    compares ours_c8.npy, ours_f4.npy, ours_f8.npy, ours_u1.npy
"""

import pathlib
import sys

import numpy as np


def array(dtype):
    dtype = np.dtype(dtype)
    i = np.arange(24).reshape(2, 3, 4)
    if dtype.kind == "b":
        return (i % 2).astype(dtype)
    values = 7 * i % 13
    if dtype.kind != "u":
        values = values - 3
    if dtype.kind == "c":
        values = values + 1j * (i % 5)
    return values.astype(dtype)


def write(folder):
    everything = {}
    for kind in "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16".split():
        for order in "CF":
            for end in "<>":
                name = f"{kind.replace('?', 'b1')}_{order}_{'le' if end == '<' else 'be'}"
                values = array(kind).astype(np.dtype(kind).newbyteorder(end), order=order)
                np.save(folder / f"{name}.npy", values)
                everything[name] = values
    np.savez(folder / "plain.npz", **everything)
    np.savez_compressed(folder / "packed.npz", **everything)
    np.save(folder / "scalar.npy", np.complex64(2 - 3j))
    np.save(folder / "empty.npy", np.zeros((0, 3), "f4"))
    np.save(folder / "fields.npy", np.zeros(3, [("a", "f4"), ("b", "i4")]))
    np.save(folder / "text.npy", np.array(["a", "bc"]))
    np.save(folder / "long.npy", np.zeros(3, "f8").astype(np.longdouble))
    with open(folder / "version2.npy", "wb") as file:
        np.lib.format.write_array(file, array("f4"), version=(2, 0))


def check(folder):
    for kind in "c8 f4 f8 u1".split():
        found = np.load(folder / f"ours_{kind}.npy")
        assert found.dtype == np.dtype("<" + kind), found.dtype
        assert found.flags.c_contiguous and np.array_equal(found, array(kind)), kind
    print("checked")


{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
