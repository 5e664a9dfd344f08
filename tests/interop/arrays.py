"""Arrays of MATLAB and HDF5 files as scipy, h5py and MATLAB write them, with NumPy's own images of them."""

import pathlib
import struct
import sys

import h5py
import numpy as np
import scipy.io

# K-space [x, y, coil] as MATLAB shows it.
SHAPE = (12, 10, 3)


def kspace():
    count = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    return (np.cos(count) + 0.25 * (count % 7) + 1j * np.sin(3 * count)).astype(np.complex128)


def big_endian(path, name, array):
    """A file of version 5 in the order of SPARC and PowerPC, which no program at hand writes."""

    def element(kind, data):
        return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)

    flat = array.flatten("F")
    real, imaginary = flat.real.astype(">f8"), flat.imag.astype(">f8")
    parts = [
        element(6, struct.pack(">II", 6 | 0x800, 0)),
        element(5, struct.pack(f">{array.ndim}i", *array.shape)),
        element(1, name.encode()),
        element(9, real.tobytes()),
        element(9, imaginary.tobytes()),
    ]
    header = b"MATLAB 5.0 MAT-file, Platform: SOL2".ljust(124) + struct.pack(">H", 0x100) + b"MI"
    path.write_bytes(header + element(14, b"".join(parts)))


def matlab_73(path, arrays, userblock=512, numbers=None):
    """A file of version 7.3: HDF5 behind a block of text, with axes reversed and MATLAB's attributes."""

    def put(group, name, value):
        if isinstance(value, dict):
            inner = group.create_group(name)
            inner.attrs["MATLAB_class"] = np.bytes_("struct")
            for field, own in value.items():
                put(inner, field, own)
            return
        if isinstance(value, str):
            data = group.create_dataset(name, data=np.array([[ord(c)] for c in value], "u2"))
            data.attrs["MATLAB_class"] = np.bytes_("char")
            return
        value = np.atleast_2d(value).T
        kinds = {"c16": "double", "f8": "double", "c8": "single", "f4": "single", "b1": "logical", "i2": "int16"}
        kind = kinds[value.dtype.str[1:]]
        if np.iscomplexobj(value):
            part = value.real.dtype
            pair = np.zeros(value.shape, [("real", part), ("imag", part)])
            pair["real"], pair["imag"] = value.real, value.imag
            value = pair
        if value.dtype == bool:
            value = value.astype("u1")
        data = group.create_dataset(name, data=value, chunks=value.shape, compression="gzip")
        data.attrs["MATLAB_class"] = np.bytes_(kind)

    with h5py.File(path, "w", userblock_size=userblock) as file:
        for name, value in arrays.items():
            put(file, name, value)
        held = file.create_group("#refs#")

        def cell(group, name, members):
            data = group.create_dataset(name, (len(members), 1), h5py.ref_dtype)
            data.attrs["MATLAB_class"] = np.bytes_("cell")
            for index, member in enumerate(members):
                data[index, 0] = held[member].ref

        put(held, "a", "a")
        members = ["a"]
        if numbers is not None:
            put(held, "b", numbers)
            put(held, "c", {"k": 2 * numbers})
            cell(held, "d", ["b", "a"])
            members += ["b", "c", "d"]
            # A field of two structs, and a sparse array.
            both = file.create_group("two")
            both.attrs["MATLAB_class"] = np.bytes_("struct")
            field = both.create_dataset("k", (2, 1), h5py.ref_dtype)
            field[0, 0], field[1, 0] = held["a"].ref, held["b"].ref
            sparse = file.create_group("sparse")
            sparse.attrs["MATLAB_class"], sparse.attrs["MATLAB_sparse"] = np.bytes_("double"), np.uint64(4)
            sparse["data"], sparse["ir"], sparse["jc"] = np.ones(2), np.array([0, 3], "u8"), np.array([0, 1, 2], "u8")
        cell(file, "cell", members)
    if userblock:
        text = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .".ljust(124) + b"\x00\x02IM"
        with open(path, "r+b") as file:
            file.write(text)


def write(folder):
    k = kspace()
    image = np.sqrt((abs(np.fft.ifft2(np.fft.ifftshift(k, (0, 1)), axes=(0, 1))) ** 2).sum(-1))
    image = np.fft.fftshift(image)
    real = np.arange(24, dtype=float).reshape(4, 3, 2) - 7
    inner = {"s": {"k": k.astype("c8"), "note": "in a struct", "deep": {"real": real}}}
    both = {"DATA": k, "real": real, "flag": real > 0, "short": real.astype("i2"), "text": "none", "cell": [k, "a"]}
    for name, options in [("plain", {}), ("packed", {"do_compression": True})]:
        scipy.io.savemat(folder / f"{name}.mat", {**both, **inner}, **options)
    big_endian(folder / "big.mat", "DATA", k)
    scipy.io.savemat(folder / "old.mat", {"DATA": real[..., 0]}, format="4")
    newer = {name: value for name, value in both.items() if name != "cell"}
    matlab_73(folder / "newer.mat", {**newer, **inner}, numbers=k)
    matlab_73(folder / "no_block.mat", {"DATA": k}, userblock=0)
    matlab_73(folder / "cycle.mat", {"DATA": k})
    with h5py.File(folder / "cycle.mat", "r+") as file:
        # A cell that holds itself, and cells that hold each other, many times over.
        for name in ("itself", "one", "other"):
            file.create_dataset(name, (10_000, 1), h5py.ref_dtype).attrs["MATLAB_class"] = np.bytes_("cell")
        for name, held in (("itself", "itself"), ("one", "other"), ("other", "one")):
            file[name][...] = np.full((10_000, 1), file[held].ref, h5py.ref_dtype)
    with h5py.File(folder / "arrays.h5", "w") as file:
        file["kspace"] = k.T
        file["group/real"] = real
        file["group/half"] = k.T.astype("c8")
        file.create_dataset("packed", data=real, compression="gzip", shuffle=True)
        file["text"] = "a word"
    np.save(folder / "kspace.npy", k.T)
    np.save(folder / "image.npy", image.T)
    # Two repetitions and two slices: [x, y, slice, coil, repetition].
    many = np.stack([np.stack([k, 2 * k], 2), np.stack([3 * k, 4 * k], 2)], -1)
    scipy.io.savemat(folder / "many.mat", {"k": many})
    # Radial samples [readout, spoke, coil] with points kx + i ky in cycles per voxel.
    angles = np.pi * np.arange(24) / 24
    points = ((np.arange(32) - 16) / 32)[:, None] * np.exp(1j * angles)
    samples = np.exp(-np.abs(points * 9) ** 2)[..., None] * np.array([1, 1j, 0.5])
    real_points = np.stack([points.real, points.imag], -1)
    scipy.io.savemat(folder / "radial.mat", {"y": samples, "k": points, "kxy": real_points})
    np.savez(folder / "radial.npz", y=samples.transpose(2, 1, 0), k=real_points.transpose(1, 0, 2))


def samples(sources):
    """Small files for tests of damaged files, which the sources hold."""
    small = (np.arange(12).reshape(3, 4) - 5j).astype("c8")
    with h5py.File(sources / "array_hdf5/samples/image.hdf5", "w") as file:
        data = np.arange(24, dtype="i2").reshape(2, 3, 4)
        file.create_dataset("image", data=data, chunks=data.shape, compression="gzip")
    with h5py.File(sources / "array_hdf5/samples/kspace.hdf5", "w", libver="latest") as file:
        file["group/kspace"] = small
    matlab_73(sources / "matlab/samples/newer.mat", {"kspace": small})


def check(path):
    """scipy.io reads what Rayspin's tests make as files of version 5."""
    for file in sorted(path.glob("*.mat")):
        scipy.io.loadmat(file)


if __name__ == "__main__":
    {"write": write, "samples": samples, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
