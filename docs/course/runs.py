"""Runs rayspin-ladder and rayspin (on the PATH) and keeps what pictures.py draws: python3 docs/course/runs.py

Writes pictures.json: counts, what a texture returns, and small images. Plain Python 3.10, no packages.
"""

import base64
import json
import pathlib
import re
import struct
import subprocess
import tempfile
import zlib

FOLDER = pathlib.Path(__file__).resolve().parent


def png(rows):
    """A grey PNG of rows of bytes, in base64."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows), 9)
    whole = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    return base64.b64encode(whole).decode()


def numbers(path):
    """Rows of magnitudes of a .npy file of f32: the last two axes, the first of all others."""
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10 : 10 + length].decode()
    shape = [int(side) for side in re.search(r"\(([\d, ]+)\)", header)[1].replace(",", " ").split()]
    kind = re.search(r"'descr': '([^']+)'", header)[1]
    parts = {"<f4": 1, "<c8": 2}.get(kind)
    if parts is None:
        raise SystemExit(f"{path}: expected <f4 or <c8, found {kind}")
    height, width = shape[-2:]
    values = struct.unpack_from(f"<{parts * height * width}f", data, 10 + length)
    if parts == 2:
        values = [abs(complex(*values[i : i + 2])) for i in range(0, len(values), 2)]
    return [list(values[row * width : (row + 1) * width]) for row in range(height)]


def grey(rows, high):
    return png([[max(0, min(255, round(255 * value / high))) for value in row] for row in rows])


def run(folder, *words):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}:\n{done.stderr}")
    return done.stdout


def files(folder, chapter):
    """Writes the files that a chapter's commands write by `cat > NAME <<'CUDA'`, and those that `sed` makes."""
    text = (FOLDER / chapter).read_text(encoding="utf8")
    for name, body in re.findall(r"cat > (\S+) <<'CUDA'\n(.*?)\nCUDA\n", text, re.S):
        (folder / name).write_text(body + "\n", encoding="utf8")
    for line in re.findall(r"^sed .*$", text, re.M):
        run(folder, "sh", "-c", line)


def counted(folder, *words):
    ladder = json.loads(run(folder, "rayspin-ladder", "counters", *words, "--json", "-", "-q"))["ladders"][0]
    return {variant["variant"]: variant for variant in ladder["variants"]}


def accesses(variant, kind, space, kernel=None):
    """The accesses of this kind to this memory in all lines of all kernels, or of one."""
    kernels = [each for each in variant["kernels"] if kernel in (None, each["kernel"])]
    lines = [line for each in kernels for line in each["lines"]]
    return [access for line in lines for access in line["accesses"] if (access["kind"], access["space"]) == (kind, space)]


def total(chosen, number):
    return sum(access[number] for access in chosen)


def counts_of(folder):
    kept = {}
    order = counted(folder, "access", "--case", "order", "--size", "2^16", "--variant", "gpu-copy,gpu-offset,gpu-stride")
    kept["order"] = {name: {"requests": round(variant["summary"]["load_requests"]),
                            "sectors": round(variant["summary"]["load_sectors"])} for name, variant in order.items()}
    tile = counted(folder, "transpose", "--size", "256x256", "--variant", "gpu-coalesced,gpu-padded")
    kept["tile"] = {name: {number: total(accesses(variant, "load", "shared"), number) for number in ("requests", "turns")}
                    for name, variant in tile.items()}
    files(folder, "06-divergence.md")
    kept["branch"] = {}
    for name in ("parity", "warps"):
        summary = counted(folder, "matrix-add", "--own", f"{name}.cu", "--size", "256x256")[f"{name}.cu"]["summary"]
        kept["branch"][name] = {"splits": summary["splits"], "requests": round(summary["load_requests"]),
                                "moved": summary["loads_moved_over_asked"]}
    files(folder, "07-atomics.md")
    kept["atomics"] = {}
    for case in ("uniform", "walk", "constant"):
        two = counted(folder, "histogram", "--own", "two.cu", "--case", f"{case}-counts", "--size", "20000")["two.cu"]
        chosen = accesses(two, "atomic", "global", "histogram")
        kept["atomics"][case] = {"requests": total(chosen, "requests"),
                                 "same": total(chosen, "most") / total(chosen, "requests")}
    own = counted(folder, "histogram", "--own", "own.cu", "--case", "walk-counts", "--size", "20000", "--grid", "4",
                  "--shared", "4096")["own.cu"]
    kept["atomics"]["own"] = {"requests": total(accesses(own, "atomic", "global", "histogram"), "requests")}
    back = counted(folder, "backproject", "--variant", "gpu-rays,gpu-columns,gpu-texture")
    kept["backproject"] = {name: variant["summary"]["load_requests"] for name, variant in back.items()}
    return kept


def texture_of(folder):
    """The chapter's program at places from −2 to 6, which no border between texels meets."""
    files(folder, "09-textures.md")
    places = [round(-2 + 8 * (i + 0.5) / 160, 4) for i in range(160)]
    program = (folder / "textures.cu").read_text(encoding="utf8")
    program = program.replace("n = 7;", f"n = {len(places)};").replace("<<<1, 32>>>", "<<<5, 32>>>")
    program = re.sub(r"places\[n\] = \{.*?\};", f"places[n] = {{{', '.join(map(str, places))}}};", program, flags=re.S)
    (folder / "textures.cu").write_text(program, encoding="utf8")
    kept = {"places": places}
    for line in run(folder, "rayspin-ladder", "run", "textures.cu").splitlines():
        name, values = line[:16].strip(), line[16:].split()
        kept[name] = [float(value) for value in values]
    return kept


def metrics(folder, image, truth, *fit):
    return json.loads(run(folder, "rayspin", "metrics", image, truth, *fit, "--json", "-q"))


def images_of(folder):
    kept = {"mri": {}, "views": {}, "renders": {}}
    simulate = "rayspin simulate mri -o spokes.h5 --trajectory radial --matrix 128,128 --coils 1 --shots 128 --snr 50 --truth truth.npy -q"
    run(folder, *simulate.split())
    truth = numbers(folder / "truth.npy")
    high = max(map(max, truth))
    kept["mri"]["truth"] = {"picture": grey(truth, high)}
    for name, method in (("gridding", "gridding"), ("least squares", "ls")):
        run(folder, *f"rayspin recon mri spokes.h5 -o {method}.npy --method {method} -q".split())
        judged = metrics(folder, f"{method}.npy", "truth.npy", "--magnitude", "--fit")
        image = [[judged["scale"][0] * value for value in row] for row in numbers(folder / f"{method}.npy")]
        difference = [[4 * abs(a - b) for a, b in zip(*rows)] for rows in zip(image, truth)]
        kept["mri"][name] = {"picture": grey(image, high), "difference": grey(difference, high), "error": judged["error_percent"]}
    run(folder, *"rayspin simulate ct -o parallel.h5 --geometry parallel --matrix 128,128 --views 180 --truth slice.npy -q".split())
    truth = numbers(folder / "slice.npy")
    high = 0.5 * max(map(max, truth))
    for step in (45, 12, 1):
        chosen = ",".join(str(view) for view in range(0, 180, step))
        run(folder, *f"rayspin recon ct parallel.h5 -o views.npy --view {chosen} -q".split())
        kept["views"][str(180 // step)] = {"picture": grey(numbers(folder / "views.npy"), high),
                                           "error": metrics(folder, "views.npy", "slice.npy")["error_percent"]}
    kept["views"]["truth"] = {"picture": grey(truth, high)}
    run(folder, *"rayspin simulate ct -o cone.h5 --matrix 64,64,64 --views 120 -q".split())
    run(folder, *"rayspin recon ct cone.h5 -o head.nii.gz -q".split())
    for name, mode in (("X-ray: the sum", "xray"), ("maximum", "mip"), ("surface", "surface")):
        run(folder, *f"rayspin render head.nii.gz -o {mode}.png --mode {mode} --size 196 -q".split())
        kept["renders"][name] = base64.b64encode((folder / f"{mode}.png").read_bytes()).decode()
    return kept


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kept = counts_of(folder) | {"texture": texture_of(folder)} | images_of(folder)
    (FOLDER / "pictures.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
