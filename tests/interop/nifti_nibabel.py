"""NIfTI files exchanged with nibabel.

usage: nifti_nibabel.py write FOLDER    NAME.nii[.gz] by nibabel, each with NAME.npy (complex64, [t, z, y, x] or [z, y, x])
                                        and NAME.txt (the affine, three rows of four numbers, RAS mm)
       nifti_nibabel.py check FOLDER    compares every NAME.nii[.gz] with NAME.npy and NAME.txt
"""

import pathlib
import sys

import nibabel
import numpy as np


def rotation(a, b, c):
    def turn(angle, i, j):
        m = np.eye(3)
        m[i, i] = m[j, j] = np.cos(angle)
        m[i, j], m[j, i] = -np.sin(angle), np.sin(angle)
        return m

    return turn(a, 0, 1) @ turn(b, 1, 2) @ turn(c, 0, 2)


def affine(spacing, angles, origin, flip=1.0):
    out = np.eye(4)
    out[:3, :3] = rotation(*angles) @ np.diag([spacing[0], spacing[1], spacing[2] * flip])
    out[:3, 3] = origin
    return out


def save(folder, name, data, matrix, *, sform=1, qform=1, slope=None, big=False, gz=False, unit="mm"):
    header = nibabel.Nifti1Header(endianness=">" if big else "<")
    header.set_data_dtype(data.dtype)
    image = nibabel.Nifti1Image(data, None, header)
    image.set_sform(matrix if sform else None, code=sform)
    image.set_qform(matrix if qform else None, code=qform)
    image.header.set_xyzt_units(unit)
    path = folder / (name + (".nii.gz" if gz else ".nii"))
    if slope:
        image.header.set_slope_inter(*slope)
        image = nibabel.Nifti1Image(data * slope[0] + slope[1], None, image.header)
        image.set_sform(matrix, code=1)
    nibabel.save(image, path)
    back = nibabel.load(path)
    values = np.asarray(back.dataobj)
    if values.ndim == 2:
        values = values[:, :, None]
    np.save(folder / (name + ".npy"), np.ascontiguousarray(values.T.astype(np.complex64)))
    found = back.affine.copy()
    found[:3] *= {"mm": 1, "meter": 1e3, "micron": 1e-3}[unit]
    np.savetxt(folder / (name + ".txt"), found[:3])


def write(folder):
    rng = np.random.default_rng(1)
    oblique = affine((0.9, 1.1, 3.0), (0.3, -0.7, 1.9), (-80.5, 12.25, 33.0))
    mirrored = affine((2.0, 2.0, 2.0), (2.9, 0.1, -0.4), (5, -6, 7), flip=-1.0)
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
        data = (rng.random((5, 4, 3)) * 100).astype(dtype)
        save(folder, f"type_{dtype}", data, oblique)
        save(folder, f"big_{dtype}", data, oblique, big=True)
    for dtype in ("c8", "c16"):
        data = (rng.standard_normal((4, 3, 2)) + 1j * rng.standard_normal((4, 3, 2))).astype(dtype)
        save(folder, f"type_{dtype}", data, mirrored, gz=True)
        save(folder, f"big_{dtype}", data, mirrored, big=True)
    real = rng.random((6, 5, 4)).astype("f4")
    save(folder, "sform_only", real, oblique, qform=0)
    save(folder, "qform_only", real, mirrored, sform=0)
    save(folder, "half_turn", real, affine((1, 2, 3), (np.pi, 0, 0), (1, 2, 3)), sform=0)
    save(folder, "metres", real, oblique, unit="meter")
    save(folder, "series", rng.random((3, 4, 5, 6)).astype("f4"), oblique)
    save(folder, "plane", rng.random((7, 6)).astype("f4"), oblique)
    save(folder, "scaled", (rng.random((4, 4, 4)) * 200).astype("i2"), oblique, slope=(0.5, -10.0))


def check(folder):
    count = 0
    for path in sorted(folder.glob("*.nii*")):
        name = path.name.removesuffix(".gz").removesuffix(".nii")
        image = nibabel.load(path)
        expected = np.load(folder / (name + ".npy"))
        values = np.asarray(image.dataobj)
        assert values.T.shape == expected.shape, (name, values.T.shape, expected.shape)
        assert values.dtype == expected.dtype, (name, values.dtype, expected.dtype)
        assert np.array_equal(values.T, expected), name
        matrix = np.loadtxt(folder / (name + ".txt"))
        for form, tolerance in ((image.affine, 1e-6), (image.get_sform(), 1e-6), (image.get_qform(), 1e-4)):
            scale = max(1.0, np.abs(matrix).max())
            assert np.allclose(form[:3], matrix, rtol=0, atol=tolerance * scale), (name, form, matrix)
        zooms = np.sqrt((matrix[:, :3] ** 2).sum(0))
        assert np.allclose(image.header.get_zooms()[:3], zooms, rtol=1e-5), name
        assert image.header.get_xyzt_units()[0] == "mm", name
        assert int(image.header["qform_code"]) == 1 and int(image.header["sform_code"]) == 1, name
        count += 1
    print(f"checked {count}")


{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
