"""Integers of other programs, in a folder: write makes them, check reads what Rayspin converted."""

import pathlib
import sys

import nibabel
import numpy as np
import pydicom
import tifffile
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid


def head():
    """Air, water and bone [z, y, x]; one slice, as a DICOM file has it."""
    return np.fromfunction(lambda z, y, x: -1024 + 400 * y + x, (1, 7, 5)).astype(np.int16)


def dicom(path):
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID = CTImageStorage, ExplicitVRLittleEndian
    meta.MediaStorageSOPInstanceUID = generate_uid()
    of = FileDataset(path, {}, file_meta=meta, preamble=b"\0" * 128)
    of.SOPClassUID, of.SOPInstanceUID = CTImageStorage, meta.MediaStorageSOPInstanceUID
    of.Modality, of.SeriesInstanceUID = "CT", generate_uid()
    of.Rows, of.Columns, of.SamplesPerPixel, of.PhotometricInterpretation = 7, 5, 1, "MONOCHROME2"
    of.BitsAllocated, of.BitsStored, of.HighBit, of.PixelRepresentation = 16, 12, 11, 0
    of.RescaleSlope, of.RescaleIntercept = 1, -1024
    of.PixelSpacing, of.ImagePositionPatient, of.ImageOrientationPatient = [1, 1], [0, 0, 0], [1, 0, 0, 0, 1, 0]
    of.PixelData = (head()[0] + 1024).astype("<u2").tobytes()
    of.save_as(path, enforce_file_format=True)


def write(folder):
    nibabel.save(nibabel.Nifti1Image(head().T, np.eye(4)), folder / "nibabel.nii.gz")
    # nibabel stores the numbers as they are where slope and intercept are set.
    scaled = nibabel.Nifti1Image(head().T, np.eye(4))
    scaled.header.set_slope_inter(0.25, 3)
    nibabel.save(scaled, folder / "scaled.nii")
    tifffile.imwrite(folder / "tifffile.tif", head())
    dicom(folder / "pydicom.dcm")


def numbers(path):
    """Values of a file, and the type that it stores."""
    if path.name.endswith(".nii.gz"):
        image = nibabel.load(path)
        return np.asarray(image.dataobj).T, image.get_data_dtype()
    if path.suffix == ".npy":
        values = np.load(path)
    elif path.suffix == ".tif":
        values = tifffile.imread(path).reshape(head().shape)
    elif path.suffix == ".dicom":
        (one,) = path.iterdir()
        one = pydicom.dcmread(one)
        return (one.pixel_array * float(one.RescaleSlope) + float(one.RescaleIntercept))[None], one.pixel_array.dtype
    elif path.suffix == ".mha":
        text, _, bytes_ = path.read_bytes().partition(b"ElementDataFile = LOCAL\n")
        kind = {b"MET_SHORT": "<i2", b"MET_USHORT": "<u2", b"MET_FLOAT": "<f4"}[text.split(b"ElementType = ")[1].strip()]
        values = np.frombuffer(bytes_, kind).reshape(head().shape)
    else:
        import h5py

        with h5py.File(path) as file:
            values = file["dataset/image_0/data"][0, 0]
    return values, values.dtype


def check(folder):
    for name in ["nibabel.nii.gz", "scaled.nii", "tifffile.tif", "pydicom.dcm"]:
        stored = head()
        wanted = 0.25 * stored + 3 if name == "scaled.nii" else stored
        for ending in ["nii.gz", "npy", "tif", "mha", "h5", "dicom"]:
            values, kind = numbers(folder / f"{name}.{ending}")
            assert np.array_equal(values, wanted), (name, ending)
            whole = name != "scaled.nii" or ending in ("nii.gz", "dicom")
            assert kind.kind == ("i" if whole else "f") or name == "pydicom.dcm" and kind.kind == "u", (name, ending, kind)
            assert kind.itemsize == (2 if whole else 4), (name, ending, kind)


{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
