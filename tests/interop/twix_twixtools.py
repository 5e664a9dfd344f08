"""Compares what Rayspin reads of Siemens raw data with twixtools: twix_twixtools.py check FOLDER.

Beside each NAME.dat, FOLDER holds NAME.bin, the samples of all readouts as complex64, and NAME.txt, a line for each readout: samples,
coils, nine counters, samples to discard at both ends, centre sample, time stamp, the bits of twixtools' flags that Rayspin keeps, and
the position.
"""

import pathlib
import sys

import numpy as np
import twixtools

COUNTERS = ("Lin", "Par", "Ave", "Sli", "Eco", "Phs", "Rep", "Set", "Seg")
KEPT = ("NOISEADJSCAN", "PHASCOR", "REFLECT", "FIRSTSCANINSLICE", "LASTSCANINSLICE", "LASTSCANINMEAS")


def row(mdb):
    mdh = mdb.mdh
    counters = [getattr(mdh.Counter, name) for name in COUNTERS]
    flags = sum(mdb.is_flag_set(name) << bit for bit, name in enumerate(KEPT))
    numbers = [mdh.SamplesInScan, mdh.UsedChannels, *counters, mdh.CutOff.Pre, mdh.CutOff.Post, mdh.CenterCol, mdh.TimeStamp, flags]
    place = mdh.SliceData.SlicePos
    return [int(number) for number in numbers], np.array([place.Sag, place.Cor, place.Tra], np.float32)


def check(path):
    measurement = twixtools.read_twix(str(path), verbose=False, parse_geometry=False, parse_pmu=False)[-1]
    readouts = [mdb for mdb in measurement["mdb"] if not mdb.is_flag_set("SYNCDATA")]
    lines = path.with_suffix(".txt").read_text().splitlines()
    assert len(lines) == len(readouts), (len(lines), len(readouts))
    samples, start = np.fromfile(path.with_suffix(".bin"), np.complex64), 0
    for number, (line, mdb) in enumerate(zip(lines, readouts)):
        numbers, position = row(mdb)
        words = line.split()
        assert [int(word) for word in words[: len(numbers)]] == numbers, (number, words, numbers)
        assert np.array_equal(np.array(words[len(numbers) :], np.float32), position), (number, words, position)
        data = np.asarray(mdb.data)
        own = samples[start : start + data.size].reshape(data.shape)
        assert own.tobytes() == data.tobytes(), number
        start += data.size
    assert start == samples.size, (start, samples.size)
    print(f"{path.name}: {len(readouts)} readouts are equal")


if __name__ == "__main__":
    _, action, folder = sys.argv
    assert action == "check", action
    for path in sorted(pathlib.Path(folder).glob("*.dat")):
        check(path)
