"""Writes ISMRMRD files with ismrmrd-python and h5py for Rayspin's tests to read: ismrmrd_write.py FOLDER."""

import os
import sys

import h5py
import ismrmrd
import ismrmrd.xsd
import numpy as np
from ismrmrd.hdf5 import acquisition_header_dtype

SPACE = (
    "<matrixSize><x>{0}</x><y>{1}</y><z>{2}</z></matrixSize>"
    "<fieldOfView_mm><x>{3}</x><y>{4}</y><z>{5}</z></fieldOfView_mm>"
)


def value(acquisition, coil, sample):
    """The sample at a place; the tests compute the same."""
    return acquisition * 100 + coil * 10 + sample / 16 - 1j * sample


def samples(acquisition, coils, count):
    coil, sample = np.meshgrid(np.arange(coils), np.arange(count), indexing="ij")
    return value(acquisition, coil, sample).astype(np.complex64)


def header(encodings, before="", after=""):
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">' + before + "<experimentalConditions>"
        "<H1resonanceFrequency_Hz>63500000</H1resonanceFrequency_Hz></experimentalConditions>"
        + "".join(encodings)
        + after
        + "</ismrmrdHeader>"
    )


def encoding(encoded, recon, trajectory, limits="", after=""):
    return (
        f"<encoding><encodedSpace>{SPACE.format(*encoded)}</encodedSpace>"
        f"<reconSpace>{SPACE.format(*recon)}</reconSpace><encodingLimits>{limits}</encodingLimits>"
        f"<trajectory>{trajectory}</trajectory>{after}</encoding>"
    )


def epi(path):
    """Two noise readouts of a second encoding, then lines forth and back over slices and repetitions."""
    xml = header(
        [
            encoding(
                (16, 6, 1, 200, 100, 5),
                (8, 6, 1, 100, 100, 5),
                "epi",
                "<slice><minimum>0</minimum><maximum>2</maximum><center>1</center></slice>",
                "<parallelImaging><accelerationFactor><kspace_encoding_step_1>2</kspace_encoding_step_1>"
                "<kspace_encoding_step_2>1</kspace_encoding_step_2></accelerationFactor></parallelImaging>",
            ),
            encoding((32, 1, 1, 200, 100, 5), (32, 1, 1, 200, 100, 5), "cartesian"),
        ],
        "<measurementInformation><patientPosition>HFS</patientPosition>"
        "<protocolName>ep2d &lt;test&gt;</protocolName></measurementInformation>"
        "<acquisitionSystemInformation><systemVendor>Härte &amp; Söhne</systemVendor>"
        "<systemFieldStrength_T>2.5</systemFieldStrength_T>"
        "<receiverChannels>4</receiverChannels></acquisitionSystemInformation>",
    )
    ismrmrd.xsd.CreateFromDocument(xml)
    with ismrmrd.Dataset(path, "dataset", mode="w") as dataset:
        dataset.write_xml_header(xml.encode("utf-8"))
        index = 0
        for _ in range(2):
            acquisition = ismrmrd.Acquisition.from_array(samples(index, 4, 32))
            acquisition.set_flag(ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
            acquisition.encoding_space_ref = 1
            dataset.append_acquisition(acquisition)
            index += 1
        for repetition in range(2):
            for slice_index in range(3):
                for line in range(6):
                    acquisition = ismrmrd.Acquisition.from_array(samples(index, 4, 16))
                    acquisition.idx.kspace_encode_step_1 = line
                    acquisition.idx.slice = slice_index
                    acquisition.idx.repetition = repetition
                    acquisition.center_sample = 8
                    if line % 2:
                        acquisition.set_flag(ismrmrd.ACQ_IS_REVERSE)
                    acquisition.position[:] = (1.5, -2.5, 10.0 * slice_index)
                    acquisition.read_dir[:] = (1, 0, 0)
                    acquisition.phase_dir[:] = (0, 1, 0)
                    acquisition.slice_dir[:] = (0, 0, 1)
                    dataset.append_acquisition(acquisition)
                    index += 1


def heads(count, samples_, channels, dims):
    out = np.zeros(count, dtype=acquisition_header_dtype)
    out["number_of_samples"] = samples_
    out["active_channels"] = channels
    out["trajectory_dimensions"] = dims
    out["center_sample"] = samples_ // 2
    return out


def by_hand(path, trajectory):
    """Spokes written with h5py; without `trajectory` the compound has no such member."""
    units = (
        "<userParameters><userParameterString><name>trajectory_units</name><value>1/m</value>"
        "</userParameterString></userParameters>"
    )
    xml = header([encoding((12, 12, 1, 240, 240, 5), (12, 12, 1, 240, 240, 5), "radial")], after=units)
    floats = h5py.special_dtype(vlen=np.dtype("float32"))
    members = [("head", acquisition_header_dtype), ("traj", floats), ("data", floats)]
    if not trajectory:
        del members[1]
    rows = np.empty(5, dtype=np.dtype(members))
    rows["head"] = heads(5, 12, 2, 2 if trajectory else 0)
    for index in range(5):
        rows["data"][index] = samples(index, 2, 12).view(np.float32).reshape(-1)
        if trajectory:
            points = np.stack([np.arange(12.0), index + np.arange(12.0) / 8], axis=1)
            rows["traj"][index] = points.astype(np.float32).reshape(-1)
    with h5py.File(path, "w") as file:
        file.create_dataset("scan_7/xml", data=np.array([xml], dtype=object), dtype=h5py.string_dtype("utf-8"))
        file.create_dataset("scan_7/data", data=rows, chunks=(2,), maxshape=(None,), compression="gzip")


AXES = np.eye(3)


def images(path, places):
    """Images of value 10 repetition + their number among the places (repetition, position, axis of the slices)."""
    with ismrmrd.Dataset(path, "dataset", True) as file:
        file.write_xml_header(header([encoding((6, 4, 1, 12, 8, 5), (6, 4, 1, 12, 8, 5), "cartesian")]).encode())
        for number, (repetition, position, axis) in enumerate(places):
            data = np.full((4, 6), 10 * repetition + number, np.float32)
            image = ismrmrd.Image.from_array(data, transpose=False)
            image.field_of_view[:] = (12, 8, 5)
            image.position[:] = position
            image.read_dir[:], image.phase_dir[:], image.slice_dir[:] = np.roll(AXES, 2 - axis, axis=0)
            image.repetition = repetition
            file.append_image("image_3", image)


if __name__ == "__main__":
    folder = sys.argv[1]
    epi(os.path.join(folder, "epi.h5"))
    by_hand(os.path.join(folder, "radial.h5"), True)
    by_hand(os.path.join(folder, "notraj.h5"), False)
    heights = [0, 14, 7]
    images(os.path.join(folder, "mixed.h5"), [(r, (1, 2, z), 2) for z in heights for r in (0, 1)])
    planes = [((0, 0, 5), 2), ((3, 0, 0), 0), ((0, 0, 0), 2), ((9, 0, 0), 0)]
    images(os.path.join(folder, "planes.h5"), [(0, *place) for place in planes])
