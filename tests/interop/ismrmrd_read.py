"""Checks with ismrmrd-python the files that Rayspin's tests wrote: ismrmrd_read.py FOLDER."""

import glob
import os
import sys

import h5py
import ismrmrd
import ismrmrd.xsd
import numpy as np
from ismrmrd.hdf5 import acquisition_header_dtype, image_header_dtype

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ismrmrd_write import samples  # noqa: E402


def raw(path):
    with h5py.File(path, "r") as file:
        stored = file["dataset/data"]
        assert stored.dtype["head"] == acquisition_header_dtype, stored.dtype["head"]
        assert stored.dtype.names == ("head", "traj", "data")
        assert stored.dtype.itemsize == 340 + 16 + 16, stored.dtype.itemsize
        assert stored.maxshape == (None,)
    with ismrmrd.Dataset(path, "dataset", mode="r") as dataset:
        header = ismrmrd.xsd.CreateFromDocument(dataset.read_xml_header())
        assert header.acquisitionSystemInformation.systemVendor == "Härte & Söhne"
        assert header.acquisitionSystemInformation.receiverChannels == 3
        assert header.experimentalConditions.H1resonanceFrequency_Hz == 63866218
        (encoding,) = header.encoding
        assert (encoding.encodedSpace.matrixSize.x, encoding.encodedSpace.matrixSize.y) == (8, 6)
        assert encoding.reconSpace.fieldOfView_mm.z == 5
        assert encoding.encodingLimits.kspace_encoding_step_1.center == 3
        assert encoding.parallelImaging.accelerationFactor.kspace_encoding_step_1 == 3
        assert encoding.trajectory.value == "cartesian"
        strings = {s.name: s.value for s in header.userParameters.userParameterString}
        assert strings == {"trajectory_units": "radians/m", "protocol_name": "no position"}, strings
        assert dataset.number_of_acquisitions() == 6
        for index in range(6):
            acquisition = dataset.read_acquisition(index)
            assert acquisition.version == 1
            assert acquisition.scan_counter == index
            assert acquisition.idx.kspace_encode_step_1 == index
            assert acquisition.is_flag_set(ismrmrd.ACQ_IS_REVERSE)
            assert not acquisition.is_flag_set(ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
            assert acquisition.center_sample == 3
            assert acquisition.isChannelActive(2) and not acquisition.isChannelActive(3)
            assert list(acquisition.position) == [1, 2, 3]
            np.testing.assert_array_equal(acquisition.data, samples(index, 3, 8))
            points = 10 * index + np.arange(8)[:, None] + np.arange(2)[None, :] / 4
            np.testing.assert_array_equal(acquisition.traj, points.astype(np.float32))
    # Another program may append to it.
    with ismrmrd.Dataset(path, "dataset", mode="r+") as dataset:
        dataset.append_acquisition(ismrmrd.Acquisition.from_array(samples(6, 3, 8)))
        assert dataset.number_of_acquisitions() == 7
        np.testing.assert_array_equal(dataset.read_acquisition(6).data, samples(6, 3, 8))


def anything(path):
    """A random scan: the header fits the schema and every acquisition has the shape that its head states."""
    with ismrmrd.Dataset(path, "dataset", mode="r") as dataset:
        header = ismrmrd.xsd.CreateFromDocument(dataset.read_xml_header())
        for index in range(dataset.number_of_acquisitions()):
            acquisition = dataset.read_acquisition(index)
            assert acquisition.encoding_space_ref < len(header.encoding)
            assert np.isfinite(acquisition.data).all()


def image(path, kind):
    expected = np.fromfunction(lambda z, y, x: 100 * z + 10 * y + x + 0.5j, (2, 3, 5))
    with h5py.File(path, "r") as file:
        assert file["dataset/image_0/header"].dtype == image_header_dtype
    with ismrmrd.Dataset(path, "dataset", mode="r") as dataset:
        assert dataset.number_of_images("image_0") == 1
        found = dataset.read_image("image_0", 0)
        assert list(found.matrix_size) == [2, 3, 5] or list(found.matrix_size) == [5, 3, 2], list(found.matrix_size)
        assert list(found.getHead().matrix_size) == [5, 3, 2]
        assert list(found.field_of_view) == [10, 9, 8]
        assert list(found.position) == [5, 6, 7]
        assert found.data.shape == (1, 2, 3, 5)
        if kind == "complex":
            assert found.image_type == ismrmrd.IMTYPE_COMPLEX
            np.testing.assert_array_equal(found.data[0], expected.astype(np.complex64))
            assert found.meta["Method"] == "CG <SENSE> é", found.meta
        else:
            assert found.image_type == ismrmrd.IMTYPE_MAGNITUDE
            np.testing.assert_allclose(found.data[0], np.abs(expected), rtol=1e-6)
        assert found.meta["DataRole"] == "Image"


def grid(path):
    """Made of arrays: noise, then 3 repetitions of 2 slices of 4 lines."""
    with ismrmrd.Dataset(path, "dataset", mode="r") as dataset:
        header = ismrmrd.xsd.CreateFromDocument(dataset.read_xml_header())
        (encoding,) = header.encoding
        assert header.acquisitionSystemInformation.receiverChannels == 2
        assert encoding.trajectory.value == "cartesian"
        size, fov = encoding.reconSpace.matrixSize, encoding.reconSpace.fieldOfView_mm
        assert (size.x, size.y, size.z) == (6, 5, 1), size
        assert (fov.x, fov.y, fov.z) == (120, 100, 8), fov
        limits = encoding.encodingLimits
        assert (limits.kspace_encoding_step_1.maximum, limits.kspace_encoding_step_1.center) == (4, 2)
        assert (limits.slice.maximum, limits.repetition.maximum) == (1, 2)
        all = [dataset.read_acquisition(i) for i in range(dataset.number_of_acquisitions())]
        noise = [a for a in all if a.is_flag_set(ismrmrd.ACQ_IS_NOISE_MEASUREMENT)]
        assert [a.data.shape for a in noise] == [(2, 65535), (2, 4465)] and all[:2] == noise
        assert len(all) == 2 + 3 * 2 * 4
        for a in all[2:]:
            x, coil = np.meshgrid(np.arange(6), np.arange(2))
            idx = a.idx
            value = 1 + x + 10 * idx.kspace_encode_step_1 + 100 * coil + 1j * (idx.repetition + 10 * idx.slice)
            np.testing.assert_array_equal(a.data, value.astype(np.complex64))
            assert (a.sample_time_us, a.center_sample, a.traj.size) == (2.5, 3, 0)
            assert list(a.position) == [0, 0, 8 * (idx.slice - 1)], list(a.position)
            assert idx.kspace_encode_step_1 != 1
        assert [a.is_flag_set(ismrmrd.ACQ_LAST_IN_SLICE) for a in all[2:6]] == [False] * 3 + [True]
        assert all[-1].is_flag_set(ismrmrd.ACQ_LAST_IN_MEASUREMENT)


def spokes(path):
    """Made of arrays: 4 spokes of 9 samples."""
    with ismrmrd.Dataset(path, "dataset", mode="r") as dataset:
        header = ismrmrd.xsd.CreateFromDocument(dataset.read_xml_header())
        (encoding,) = header.encoding
        assert encoding.trajectory.value == "radial", encoding.trajectory
        strings = {s.name: s.value for s in header.userParameters.userParameterString}
        assert strings == {"trajectory_units": "cycles/fov"}, strings
        assert dataset.number_of_acquisitions() == 4
        for index in range(4):
            a = dataset.read_acquisition(index)
            assert a.traj.shape == (9, 2) and a.center_sample == 4 and a.idx.kspace_encode_step_1 == index
            angle = 0.8 * index
            points = (np.arange(9) - 4)[:, None] * np.array([np.cos(angle), np.sin(angle)])[None, :]
            np.testing.assert_allclose(a.traj, points, atol=1e-6)
            sample, coil = np.meshgrid(np.arange(9), np.arange(3))
            np.testing.assert_array_equal(a.data, (100 * index + 10 * coil + 1j * sample).astype(np.complex64))


if __name__ == "__main__":
    folder = sys.argv[1]
    raw(os.path.join(folder, "raw.h5"))
    scans = glob.glob(os.path.join(folder, "random_*.h5"))
    assert len(scans) == 8
    for path in scans:
        anything(path)
    grid(os.path.join(folder, "grid.h5"))
    spokes(os.path.join(folder, "spokes.h5"))
    image(os.path.join(folder, "complex.h5"), "complex")
    image(os.path.join(folder, "magnitude.h5"), "magnitude")
