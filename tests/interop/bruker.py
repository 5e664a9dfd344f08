"""Scans as ParaVision 6 and 360 lay them out: bruker.py write FOLDER.

The order of samples is the one in which two public readers take them apart. brukerapi (schemas.py, properties_fid_core.json) reads `fid`
as blocks, cuts each to its length, and reshapes in Fortran order to [sample, receiver, line of a group, object, group, repetition], or
[sample, receiver, line of a group, group, partition, repetition] of a volume. BrkRaw (recon.py) reshapes in C order to [repetition, group,
object, line of a group, receiver, sample] and sorts lines by PVM_EncSteps1 and objects by ACQ_obj_order; of ParaVision 360 it reads
rawdata.job0 as [scan, receiver, sample]. Each file below is taken apart in both ways, which must agree with what was laid out.

Beside each folder NAME stands NAME.npy, k-space [repetition, slice, echo, coil, partition, line, sample] in the order of steps.
"""

import pathlib
import sys

import numpy as np

HEAD = "##TITLE=Parameter List, ParaVision {version}\n##JCAMPDX=4.24\n##ORIGIN=Bruker BioSpin MRI GmbH\n$$ Write Options: RLE encoded arrays\n"
END = "##END=\n$$ File finished by PARX at 2024-07-25 09:18:04.417 +0200\n"


def array(name, values):
    values = np.asarray(values)
    sizes = ", ".join(str(n) for n in values.shape)
    words, lines = [str(value) for value in values.ravel()], []
    while words:
        lines.append(" ".join(words[:16]) + (" " if len(words) > 16 else ""))
        words = words[16:]
    return f"##${name}=( {sizes} )\n" + "\n".join(lines) + "\n"


def taken_apart_by_brukerapi(words, block, samples, coils, group, objects, lines, partitions, repetitions):
    blocks = np.reshape(words, (block, -1), order="F")[: 2 * samples * coils]
    data = blocks[0::2] + 1j * blocks[1::2]
    if partitions == 1:
        data = np.reshape(data, (samples, coils, group, objects, lines // group, repetitions), order="F")
        data = np.transpose(data, (0, 2, 4, 3, 5, 1))
        return np.reshape(data, (samples, lines, objects, repetitions, coils), order="F")
    data = np.reshape(data, (samples, coils, group, lines // group, partitions, repetitions), order="F")
    data = np.transpose(data, (0, 2, 3, 4, 5, 1))
    return np.reshape(data, (samples, lines, partitions, repetitions, coils), order="F")


def taken_apart_by_brkraw(words, block, samples, coils, group, objects, lines, partitions, repetitions):
    data = (words[0::2] + 1j * words[1::2]).reshape(-1, block // 2)[:, : samples * coils].reshape(-1, coils, samples)
    pairs = lines * partitions
    data = data.reshape(repetitions, pairs // group, objects, group, coils, samples).transpose(0, 2, 4, 1, 3, 5)
    data = data.reshape(repetitions, objects, coils, pairs, samples)
    return data.reshape(repetitions, objects, coils, partitions, lines, samples)


def write(folder, name, version, method, kspace, steps, order, group, *, big=False, number="i4", padded=True, more="", in_acqp=""):
    """k-space [repetition, slice, echo, coil, partition, line, sample], whose lines and partitions are in the order of k."""
    repetitions, slices, echoes, coils, partitions, lines, samples = kspace.shape
    objects = slices * echoes
    by_object = kspace.reshape(repetitions, objects, coils, partitions, lines, samples)
    firsts = [np.argsort(np.argsort(step)) for step in steps]
    acquired = by_object[:, order][:, :, :, firsts[1]][:, :, :, :, firsts[0]]
    scans = acquired.reshape(repetitions, objects, coils, partitions * lines // group, group, samples)
    scans = scans.transpose(0, 3, 1, 4, 2, 5).reshape(-1, coils * samples)
    words = np.empty((len(scans), 2 * coils * samples))
    words[:, 0::2], words[:, 1::2] = scans.real, scans.imag
    size = np.dtype(number).itemsize
    block = -(-words.shape[1] * size // 1024) * 1024 // size if padded else words.shape[1]
    words = np.pad(words, ((0, 0), (0, block - words.shape[1]))).ravel()
    sizes = (block, samples, coils, group, objects, lines, partitions, repetitions)
    theirs = taken_apart_by_brkraw(words, *sizes)
    assert np.array_equal(theirs, acquired)
    if objects == 1 or partitions == 1:
        theirs = taken_apart_by_brukerapi(words, *sizes)
        theirs = theirs.transpose(3, 2, 4, 1, 0) if partitions == 1 else theirs.transpose(3, 4, 2, 1, 0)
        assert np.array_equal(theirs.reshape(acquired.shape), acquired)

    own = folder / name
    own.mkdir()
    dims = 3 if partitions > 1 else 2
    matrix = [samples, lines, partitions][:dims]
    job = "360" in version
    data = words.astype((">" if big else "<") + number).tobytes()
    (own / ("rawdata.job0" if job else "fid")).write_bytes(data)
    acqp = HEAD.format(version=version) + f"##$ACQ_sw_version=( 65 )\n<PV{'-' if job else ' '}{version}>\n"
    acqp += f"##$ACQ_dim={dims}\n" + array("ACQ_dim_desc", ["Spatial"] * dims)
    acqp += f"##$NI={objects}\n##$NR={repetitions}\n##$NSLICES={slices}\n##$ACQ_n_echo_images={echoes}\n##$ACQ_phase_factor={group}\n"
    acqp += array("ACQ_size", [2 * samples, *matrix[1:]]) + array("ACQ_obj_order", order)
    acqp += f"##$BYTORDA={'big' if big else 'little'}\n##$ACQ_patient_pos=Head_Prone\n"
    acqp += f"##$ACQ_grad_matrix=( {slices}, 3, 3 )\n" + "1 @3*(0) 1 @3*(0) 1 " * slices + "\n"
    acqp += array("ACQ_slice_offset", [3 * slice for slice in range(slices)])
    if not job:
        kind = {"i2": "GO_16BIT_SGN_INT", "i4": "GO_32BIT_SGN_INT", "f4": "GO_32BIT_FLOAT"}[number]
        acqp += f"##$GO_raw_data_format={kind}\n##$GO_block_size={'Standard_KBlock_Format' if padded else 'continuous'}\n"
    (own / "acqp").write_text(acqp + in_acqp + END)
    text = HEAD.format(version=version) + f"##$Method={method}\n##$PVM_EncNReceivers={coils}\n##$PVM_EffSWh=50000\n##$PVM_SliceThick=2\n"
    text += array("PVM_Matrix", matrix) + array("PVM_EncMatrix", matrix) + array("PVM_Fov", [32, 24, 16][:dims]) + more
    if "PVM_EncGen" not in more:
        text += array("PVM_EncSteps1", steps[0]) + (array("PVM_EncSteps2", steps[1]) if dims == 3 else "")
    (own / "method").write_text(text + END)
    np.save(folder / f"{name}.npy", kspace.astype(np.complex64))


def in_blocks(scans):
    """Scans [scan, receiver, sample] as 32-bit words in blocks of 1024 bytes, and the words of a block."""
    words = np.empty((len(scans), 2 * scans[0].size))
    words[:, 0::2], words[:, 1::2] = scans.reshape(len(scans), -1).real, scans.reshape(len(scans), -1).imag
    block = -(-words.shape[1] * 4 // 1024) * 256
    return np.pad(words, ((0, 0), (0, block - words.shape[1]))).astype("<i4"), block


def write_files(own, method, data, sizes, coils, objects, group, matrix, in_method):
    own.mkdir()
    (own / "fid").write_bytes(data.tobytes())
    acqp = HEAD.format(version="6.0.1") + f"##$ACQ_sw_version=( 65 )\n<PV 6.0.1>\n##$ACQ_dim={len(matrix)}\n"
    acqp += f"##$NI={objects}\n##$NR=1\n##$NSLICES={objects}\n##$ACQ_n_echo_images=1\n##$ACQ_phase_factor={group}\n"
    acqp += array("ACQ_size", sizes) + array("ACQ_obj_order", range(objects)) + "##$BYTORDA=little\n"
    acqp += f"##$ACQ_grad_matrix=( {objects}, 3, 3 )\n" + "1 @3*(0) 1 @3*(0) 1 " * objects + "\n"
    acqp += array("ACQ_slice_offset", [3 * slice for slice in range(objects)])
    acqp += "##$GO_raw_data_format=GO_32BIT_SGN_INT\n##$GO_block_size=Standard_KBlock_Format\n"
    (own / "acqp").write_text(acqp + END)
    text = HEAD.format(version="6.0.1") + f"##$Method=<Bruker:{method}>\n##$PVM_EncNReceivers={coils}\n##$PVM_EffSWh=50000\n"
    text += "##$PVM_SliceThick=2\n" + array("PVM_Matrix", matrix) + array("PVM_EncMatrix", matrix)
    (own / "method").write_text(text + array("PVM_Fov", [32, 24, 16][: len(matrix)]) + in_method + END)


def write_projections(folder, name, projections, matrix, group):
    """UTE [object, receiver, projection, sample] with its traj: MRIReco.jl and brukerapi read it as float64 in Fortran order
    [axis, sample, projection]. Both read fid as [sample, receiver, line of a group, object, group], blocks cut to their length."""
    objects, coils, samples = (1 if len(matrix) == 3 else 2), 3, 12
    rng = np.random.default_rng(6)
    shape = (objects, coils, projections, samples)
    own = rng.integers(-900, 900, shape) + 1j * rng.integers(-900, 900, shape)
    scans = own.reshape(objects, coils, projections // group, group, samples).transpose(2, 0, 3, 1, 4).reshape(-1, coils, samples)
    data, block = in_blocks(scans)
    theirs = np.reshape(data.ravel(), (block, -1), order="F")[: 2 * samples * coils]
    theirs = np.reshape(theirs[0::2] + 1j * theirs[1::2], (samples, coils, group, objects, projections // group), order="F")
    theirs = np.reshape(np.transpose(theirs, (0, 2, 4, 3, 1)), (samples, projections, objects, coils), order="F")
    assert np.array_equal(theirs.transpose(2, 3, 1, 0), own)
    write_files(folder / name, "UTE3D" if len(matrix) == 3 else "UTE", data, [2 * samples, projections], coils, objects, group, matrix, f"##$NPro={projections}\n")
    places = rng.uniform(-0.5, 0.5, (projections, samples, len(matrix)))
    (folder / name / "traj").write_bytes(places.astype("<f8").tobytes())
    assert np.array_equal(np.reshape(places.ravel(), (len(matrix), samples, projections), order="F").transpose(2, 1, 0), places)
    np.save(folder / f"{name}.npy", own.astype(np.complex64))
    np.save(folder / f"{name}_places.npy", places * np.array(matrix))


def write_trains(folder, name, slices):
    """Echo-planar imaging of two shots of four lines, k-space [slice, receiver, line, sample] in the order of steps. EPI.ppg loops over
    slices, shots and repetitions, slices fastest. brukerapi takes shots as the fastest, which is the same for one slice."""
    shots, lines, coils, samples = 2, 4, 2, 10
    rng = np.random.default_rng(7)
    own = rng.integers(-900, 900, (slices, coils, shots * lines, samples)) + 1j * rng.integers(-900, 900, (slices, coils, shots * lines, samples))
    steps = np.array([-4, -2, 0, 2, -3, -1, 1, 3])
    acquired = own[:, :, steps + 4].copy()
    for line in range(1, shots * lines, 2):
        acquired[:, :, line] = acquired[:, :, line, ::-1]
    scans = acquired.reshape(slices, coils, shots, lines * samples).transpose(2, 0, 1, 3).reshape(-1, coils, lines * samples)
    data, block = in_blocks(scans)
    if slices == 1:
        theirs = np.reshape(data.ravel(), (block, -1), order="F")[: 2 * lines * samples * coils]
        theirs = np.reshape(theirs[0::2] + 1j * theirs[1::2], (lines * samples, coils, shots), order="F")
        theirs = np.reshape(np.transpose(theirs, (0, 2, 1)), (samples, lines * shots, coils), order="F")[:, np.argsort(steps)]
        # brukerapi mirrors every other line once they are sorted, which is another one in a scan of several shots.
        mirrored = np.argsort(steps) % 2 == 1
        theirs[:, mirrored] = theirs[::-1, mirrored]
        assert np.array_equal(theirs.transpose(2, 1, 0)[None], own)
    more = f"##$PVM_EpiNEchoes={lines}\n##$PVM_EpiNShots={shots}\n" + array("PVM_EncSteps1", steps)
    more += array("PVM_EpiTrajAdjkx", range(samples))
    write_files(folder / name, "EPI", data, [2 * lines * samples, shots], coils, slices, 1, [samples, shots * lines], more)
    np.save(folder / f"{name}.npy", own.astype(np.complex64))


def main(folder):
    write_projections(folder, "ute6", 6, [16, 14], 1)
    write_projections(folder, "ute6_groups", 6, [16, 14], 2)
    write_projections(folder, "ute3d6", 6, [16, 14, 12], 1)
    write_trains(folder, "epi6", 1)
    write_trains(folder, "epi6_slices", 3)
    rng = np.random.default_rng(5)

    def kspace(*shape):
        return rng.integers(-9000, 9000, shape) + 1j * rng.integers(-9000, 9000, shape)

    def linear(n):
        return np.arange(n) - n // 2

    rare = np.array([0, -4, 1, -3, 2, -2, 3, -1])
    write(folder, "rare6", "6.0.1", "<Bruker:RARE>", kspace(2, 3, 1, 4, 1, 8, 20), [rare, [0]], [0, 2, 1], 2, more="##$PVM_RareFactor=2\n")
    write(folder, "msme6", "6.0.1", "<Bruker:MSME>", kspace(1, 2, 3, 1, 1, 6, 16), [linear(6), [0]], [0, 1, 2, 3, 4, 5], 1, number="i2", big=True)
    write(folder, "volume7", "7.0.0", "<Bruker:FLASH>", kspace(1, 1, 1, 2, 4, 6, 10), [linear(6), linear(4)], [0], 1, number="f4", padded=False)
    job = "##$ACQ_jobs=( 1 )\n(40, 9, 18, 144, 101, 74626.9, 48, 1, <job0>)\n##$ACQ_ScanPipeJobSettings=( 1 )\n({})\n"
    settings = "STORE_processed, {}, DISPLAY_each_accumulation, LOG_none, ACCUM_average, 1"
    jobs = [job.format(settings.format(kind)) for kind in ("STORE_32bit_signed", "STORE_64bit_float")]
    pairs = [np.tile(linear(6), 4), np.repeat(linear(4), 6)]
    general = "##$PVM_EncGenTotalSteps=24\n" + array("PVM_EncGenSteps1", pairs[0]) + array("PVM_EncGenSteps2", pairs[1])
    for name, number, of_job in (("flash360", "i4", jobs[0]), ("flash360_64", "f8", jobs[1])):
        data = kspace(2, 1, 1, 3, 4, 6, 20)
        steps = [linear(6), linear(4)]
        write(folder, name, "360.3.4", "<Bruker:FLASH>", data, steps, [0], 1, number=number, padded=False, more=general, in_acqp=of_job)


if __name__ == "__main__":
    assert sys.argv[1] == "write"
    main(pathlib.Path(sys.argv[2]))
