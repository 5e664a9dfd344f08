"""Times of reading large Siemens files: `rayspin info`, Rayspin's reader by threads, and twixtools, in one run.

    python benches/twix.py [GIGABYTES] [THREADS,...] [FOLDER]

Repeats the readouts of `mri/gre_2ch_ve11.dat` of $RAYSPIN_DATA (or ../shared/data) in files of that size in FOLDER (or the system's
folder for such files), as they are (2 coils, 8.4 KB a readout) and with the samples of 32 coils (134 KB), and deletes them at the end.
Builds and runs the release build, unless $RAYSPIN and $READ_BENCH name the programs. twixtools runs if Python has it
(pip install twixtools): it reads all readouts of the measurement as arrays.
"""

import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = pathlib.Path(os.environ.get("RAYSPIN_DATA", ROOT.parent / "shared" / "data")) / "mri"
RUNS = 5
HEAD, COIL, REPETITION = 192, 32, 64


def blocks(data, place, end):
    """Heads and samples [coil] of the readouts of a measurement of VD, and the block that marks its end."""
    readouts = []
    while place + HEAD <= end:
        head = data[place : place + HEAD]
        (mask,) = struct.unpack_from("<Q", head, 40)
        samples, coils = struct.unpack_from("<HH", head, 48)
        if mask & 1:
            return readouts, data[place:end]
        if mask >> 5 & 1:
            place += struct.unpack_from("<I", head)[0] & 0x1FFFFFF
            continue
        one = COIL + 8 * samples
        first = place + HEAD
        readouts.append((bytearray(head), [data[first + coil * one : first + (coil + 1) * one] for coil in range(coils)]))
        place = first + coils * one
    return readouts, b""


def write(path, source, size, coils):
    """A file of one measurement whose readouts are those of `source` over and over, a repetition each time."""
    data = source.read_bytes()
    count = struct.unpack_from("<I", data, 4)[0]
    start, length = struct.unpack_from("<QQ", data, 8 + 152 * (count - 1) + 8)
    (header,) = struct.unpack_from("<I", data, start)
    readouts, mark = blocks(data, start + header, start + length)
    image, places = bytearray(), []
    for head, own in readouts:
        wide = coils or len(own)
        struct.pack_into("<H", head, 50, wide)
        whole = HEAD + wide * len(own[0])
        struct.pack_into("<I", head, 0, (struct.unpack_from("<I", head)[0] & ~0x1FFFFFF) | whole)
        places.append(len(image))
        image += head + b"".join(own[coil % len(own)] for coil in range(wide))
    table = bytearray(data[:8 + 152])
    struct.pack_into("<I", table, 4, 1)
    table[8:] = data[8 + 152 * (count - 1) : 8 + 152 * count]
    repeats = max(1, int(size // len(image)))
    struct.pack_into("<QQ", table, 16, 10_240, header + repeats * len(image) + len(mark))
    with open(path, "wb") as file:
        file.write(table.ljust(10_240, b"\0") + data[start : start + header])
        for repeat in range(repeats):
            for number, place in enumerate(places):
                struct.pack_into("<H", image, place + REPETITION, repeat % 65_536)
                struct.pack_into("<I", image, place + 8, repeat * len(places) + number + 1)
            file.write(image)
        file.write(mark)
    return repeats * len(readouts)


def timed(words, **more):
    start = time.perf_counter()
    subprocess.run([*map(str, words)], check=True, stdout=subprocess.DEVNULL, **more)
    return time.perf_counter() - start


def shown(what, seconds, size):
    seconds = sorted(seconds)
    median = statistics.median(seconds)
    print(f"{what:<34} {median:8.4f} s {size / median / 1e9:7.2f} GB/s   {' '.join(f'{one:.4f}' for one in seconds)}", flush=True)


def forget(path):
    """Takes a file out of the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def twixtools(path, size):
    try:
        import twixtools as theirs
    except ImportError:
        print("twixtools is not there")
        return

    def once():
        start = time.perf_counter()
        (scan,) = theirs.read_twix(str(path), include_scans=[-1], parse_pmu=False, verbose=False)
        heads = time.perf_counter() - start
        samples = sum(block.data.size for block in scan["mdb"] if block.is_image_scan())
        assert samples > 0
        return heads, time.perf_counter() - start

    runs = [once() for _ in range(2)]
    shown("twixtools, heads", [heads for heads, _ in runs], size)
    shown("twixtools, heads and samples", [whole for _, whole in runs], size)


def main(gigabytes=4.0, threads="", folder=None):
    rayspin, bench = os.environ.get("RAYSPIN"), os.environ.get("READ_BENCH")
    if not (rayspin and bench):
        build = "cargo build --release --locked -p rayspin-cli -p rayspin-io --bin rayspin --example read_bench"
        subprocess.run(build.split(), cwd=ROOT, check=True)
        rayspin, bench = ROOT / "target/release/rayspin", ROOT / "target/release/examples/read_bench"
    cores = len(os.sched_getaffinity(0))
    threads = threads.split(",") if threads else [str(n) for n in (1, 2, 4, 8, 16, 32) if n <= cores]
    with tempfile.TemporaryDirectory(dir=folder) as made:
        for coils in (None, 32):
            path = pathlib.Path(made) / "meas.dat"
            readouts = write(path, DATA / "gre_2ch_ve11.dat", float(gigabytes) * 1e9, coils)
            size = path.stat().st_size
            print(f"\n{size / 1e9:.2f} GB, {coils or 2} coils, {readouts} readouts; {cores} cores", flush=True)
            forget(path)
            shown("rayspin info, not in memory", [timed([rayspin, "info", path])], size)
            subprocess.run(["cat", path], check=True, stdout=subprocess.DEVNULL)
            shown("rayspin info", [timed([rayspin, "info", path]) for _ in range(RUNS)], size)
            subprocess.run([bench, path, str(RUNS), *threads], check=True)
            twixtools(path, size)


if __name__ == "__main__":
    main(*sys.argv[1:])
