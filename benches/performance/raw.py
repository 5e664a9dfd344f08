"""Readers of the raw files in benches/results, one for each format. Each takes the text of a file and returns rows; a line that a reader does not
know is skipped, and the table that misses a row says so. Times keep the unit of the file."""

import ast
import json
import re
import statistics

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def columns(line):
    """Cells that two or more spaces part."""
    return re.split(r"\s{2,}", line.strip())


def floats(text):
    return [float(number) for number in re.findall(r"\d+\.\d+|\d+", text)]


def part(text, start, end=None):
    """The lines between the line that begins with `start` and the one that begins with `end`."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(start)) + 1
    last = next((i for i, line in enumerate(lines[first:], first) if end and line.startswith(end)), len(lines))
    return "\n".join(lines[first:last])


def fft_cpu(text):
    """benches/peers/fft.py: problem, {program: best ms}, {peer: ratio}."""
    names = ["Rayspin", "FFTW", "ducc0", "SciPy"]
    for line in text.splitlines():
        cells = columns(line)
        if re.fullmatch(r"(\d+ x )?\d+(x\d+)+", cells[0]):
            yield cells[0], {name: float(cell.split()[0]) for name, cell in zip(names, cells[1:5])}, dict(zip(names[1:], map(float, cells[5:])))


def nufft_cpu(text):
    """benches/peers/nufft.py: {problem: {program: {column: value}}}, with "ratios" of Rayspin."""
    found = {}
    for line in text.splitlines():
        cells = columns(line)
        if cells[0] == "problem":
            names = cells[1 : cells.index("both 2") + 1]
        elif len(cells) > 6 and cells[1] in ("Rayspin", "FINUFFT", "ducc0"):
            row = dict(zip(names, map(float, cells[2:])))
            if cells[1] == "Rayspin":
                row["ratios"] = [float(cell) for cell in cells[2 + len(names) : 4 + len(names)]]
            found.setdefault(cells[0], {})[cells[1]] = row
    return found


def scaling(text):
    """benches/peers/scaling.py: {problem: {program: ms for 1, 2, 4, 8 and 16 threads}}."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"\s*(\S.*): (\w+)\s+(\d.*)", line)
        if match and "(1.0x)" in line:
            found.setdefault(match[1], {})[match[2]] = [float(ms) for ms in re.findall(r"([\d.]+) \(", match[3])]
    return found


def nufft_gpu(text):
    """benches/peers/nufft_gpu.py: problem, then a dictionary of pairs for types 1 and 2; times in CUDA graphs."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 11 and re.fullmatch(r"\w+-\d+", cells[0]):
            graph = [cell.split(";")[0].split(" / ") for cell in (cells[2], cells[5], cells[10])]
            yield cells[0], {
                "ours": graph[0],
                "errors": cells[3],
                "plan": cells[4],
                "peer": graph[1],
                "peer errors": cells[6],
                "peer plan": cells[9],
                "ratios": [float(ratio) for ratio in graph[2]],
            }


def points(text):
    """benches/peers/points.py: {(grid, points, data, arrays): {program: {step: [ms, one for each run]}}}."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"(\d[\dx]*)\s+(\d+) (complex\d+)\s+(\w+)\s+(\S.*?)\s{2,}(\S.*?)\s+([\d.]+) ms", line)
        if match:
            grid, count, data, arrays, program, step, ms = match.groups()
            found.setdefault((grid, int(count), data, arrays), {}).setdefault(program, {}).setdefault(step, []).append(float(ms))
    return found


def calls(text):
    """benches/peers/arrays.py and the example nufft_calls: {problem: [(library, arrays, seconds until done, error or "")]}."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"(small|12 x 256\^2)\s+(\S.*), (\S.*?)\s+queued .*done\s+([\d.]+) us(?:.*error (\S+))?", line)
        if match:
            found.setdefault(match[1], []).append((match[2], match[3], float(match[4]) * 1e-6, match[5] or ""))
    return found


def cardiac_calls(text):
    """{"Python" or "Rust": [(ms from arrays, ms of its stages)]}."""
    found = {}
    for who, whole, stages in re.findall(r"cardiac CG-SENSE, 15 iterations: (\w+) from arrays ([\d.]+) ms, stages ([\d.]+) ms", text):
        found.setdefault(who, []).append((float(whole), float(stages)))
    return found


def programs(text):
    """benches/peers/cardiac.py: one JSON object a line."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def file_to_file(text):
    """benches/peers/file_to_file.py: {scan: {"whole" or "maps": [(program, median s or None, difference or None, error or None)]}}."""
    found, scan, kind = {}, None, None
    for line in text.splitlines():
        if ", lambda " in line and not line.startswith(("$", "#")):
            scan, kind = line.split(", lambda")[0], "whole"
        elif "with the same maps" in line:
            kind = "maps"
        match = re.match(r"    (Rayspin|SigPy|BART without conversion|BART)\s+(?:([\d.]+) s \(|differs)", line)
        if match:
            differs, error = re.search(r"image by ([\d.]+)", line), re.search(r"from the object by ([\d.]+)", line)
            row = (match[1], match[2] and float(match[2]), differs and differs[1], error and error[1])
            found.setdefault(scan, {}).setdefault(kind, []).append(row)
    return found


def scans(text):
    """benches/peers/scans.py: {scan and method: [(program, s, iterations, residual, streaks, NRMSE)]}."""
    found, title = {}, None
    for line in text.splitlines():
        cells = columns(line)
        if re.match(r"(Heart|Head), ", line):
            title = line
        elif cells[0] in ("Rayspin", "SigPy", "BART"):
            found.setdefault(title, []).append((cells[0], float(cells[1]), *cells[2:6]))
    return found


def maps(text):
    """kooshball_maps.txt: (whose maps, error to the object, error to the shaded object)."""
    return re.findall(r"^  (\S.*?)\s{2,}([\d.]+)\s+([\d.]+|-)$", part(text, "  " + " " * 20, "# 128"), re.MULTILINE)


def rounds(text):
    """`15 iterations, now:    0.15 0.15 …`: {(iterations, build): [s]}."""
    return {(int(n), build): floats(rest) for n, build, rest in re.findall(r"^(\d+) iterations, (\w+):(.*)$", text, re.MULTILINE)}


def whole_runs(text):
    """benches/whole_run.py: {scan: {"cpu", "cuda" or "cpu / cuda": (file to file, solver alone)}}, in s, the last a ratio."""
    found, scan = {}, None
    for line in text.splitlines():
        if ": seconds, the median of" in line:
            scan = line.split(": seconds")[0]
        match = re.match(r"\s*(cpu|cuda|cpu / cuda): file to file ([\d.]+).*, solver alone ([\d.]+)", line)
        if match:
            found.setdefault(scan, {})[match[1]] = tuple(map(float, match.groups()[1:]))
    return found


def streams(text):
    """benches/stream.sh: {options after the window: [images a second]}."""
    found, options = {}, None
    for line in text.splitlines():
        if line.startswith("# recon mri"):
            options = line.split("--stride 8 ")[1], re.search(r"-o (\S+)", line)[1]
        elif "a second" in line:
            found.setdefault(options, []).append(float(re.search(r"([\d.]+) a second", line)[1]))
    return found


def sliding(text, build):
    """sliding.txt: options, then seconds of plans, reconstruction, stream and process, and images a second, of one build."""
    for line in text.splitlines():
        if line.startswith("$ rayspin recon"):
            options = line.split("--device cuda ")[1]
        elif line.startswith(build + " median"):
            yield options, [float(s) for s in re.findall(r"([\d.]+) \(", line)[:4]], int(re.search(r"(\d+) images/s", line)[1])


def stages(line):
    """The list `[('read', 0.1), …]` at the end of a line as a dictionary of seconds."""
    return dict(ast.literal_eval(line[line.index("[(") :].split("]")[0] + "]"))


def walls_in_turns(text):
    """`SCAN METHOD OPTIONS, now: 0.677 s` and a line of stages below: {(scan, build): [(wall, stages)]}."""
    found, lines = {}, text.splitlines()
    for line, below in zip(lines, lines[1:]):
        match = re.match(r"(\w+) cg-sense .*, (before|now): ([\d.]+) s", line)
        if match:
            found.setdefault((match[1], match[2]), []).append((float(match[3]), stages(below)))
    return found


def whole_commands(text):
    """whole_commands.txt: (machine, scan, first s, median s, least to most, stages)."""
    machine, lines = None, text.splitlines()
    for line, below in zip(lines, lines[1:]):
        if line.startswith("== "):
            machine = line[3:]
        match = re.match(r"(\S.*) first ([\d.]+) s, then median ([\d.]+) \((.*)\)", line)
        if match:
            yield machine, match[1], float(match[2]), float(match[3]), match[4], stages(below)


def projection_cpu(text):
    """benches/peers/ct.py and `rayspin recon ct`: {problem: {program: s}}; the FDK of Rayspin is the median of its commands."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"(project|backproject|FDK|project-adjoint)\s{2,}(.*)", line)
        if match:
            found[match[1]] = {name: float(s) for name, s in re.findall(r"(RTK|Rayspin)\s+([\d.]+) \(", match[2])}
    found["FDK"]["Rayspin"] = statistics.median(float(s) for s in re.findall(r"voxels, ([\d.]+) s: v256.nii", text))
    return found


def projection_gpu(text):
    """`rayspin-ladder` and benches/peers/ct_gpu.py: {(operator, size, views, detector): {variant: [s]}}."""
    found, problem = {}, None
    for line in text.splitlines():
        title = re.match(r"(backproject|project): (\d+) x .* voxels, (\d+) views of (\d+) x", line)
        astra = re.match(r"ASTRA (\d+)\^3 x (\d+) of (\d+)\^2: (back|forward) ([\d.]+) ms", line)
        variant = re.match(r"(gpu-\w+)\s+([\d.]+) (ms|s) ", line)
        if title:
            problem = (title[1], int(title[2]), int(title[3]), int(title[4]))
        elif astra:
            operator = {"back": "backproject", "forward": "project"}[astra[4]]
            key = (operator, int(astra[1]), int(astra[2]), int(astra[3]))
            found.setdefault(key, {}).setdefault("ASTRA", []).append(float(astra[5]) * 1e-3)
        elif variant:
            found.setdefault(problem, {}).setdefault(variant[1], []).append(float(variant[2]) * SECONDS[variant[3]])
    return found


def ct_images(text):
    """benches/peers/ct_images.py: {problem: [(program, s, correlation, RMSE)]}, and {(views, method): [s]} of whole commands."""
    found, problem, commands = {}, None, {}
    for line in text.splitlines():
        row = re.match(r"  (\S.*?)\s{2,}(?:(\S+)\s{2,})?([\d.]+) s   correlation ([\d.]+)   RMSE ([\d.]+)", line)
        command = re.match(r"(\d+) views, (\w+): ([\d.]+) s, (\d+) KiB", line)
        if row:
            found.setdefault(problem, []).append((" ".join(filter(None, row.groups()[:2])), float(row[3]), row[4], row[5]))
        elif command:
            commands.setdefault((int(command[1]), command[2]), []).append(float(command[3]))
        else:
            problem = line
    return found, commands


def gpu_fft(text):
    """The example gpu_fft: (operator, problem, µs, cuFFT's µs)."""
    for line in text.splitlines():
        match = re.match(r"(fft|toeplitz) (.*?): ([\d.]+) us, .*; cuFFT (?:of the doubled grids )?([\d.]+) us", line)
        if match:
            yield match[1], match[2], float(match[3]), float(match[4])


def first_runs(text):
    """first_run.txt of 24 November: (scan, method, three runs ahead, three runs one by one)."""
    for line in text.splitlines():
        match = re.match(r"(\w+), ([\w-]+)\s+(\d.*) s$", line)
        if match:
            times = floats(match[3])
            yield match[1], match[2], times[:3], times[3:]


def precompiled(text):
    """benches/precompiled.py: {run: {kernels: three runs in s}}."""
    found, run = {}, None
    for line in text.splitlines():
        match = re.match(r"\s+(\S.*): first, second and third run (.*) s", line)
        if match:
            found.setdefault(run, {})[match[1]] = floats(match[2])
        elif line and not line.startswith((" ", "$")):
            run = line
    return found


def threads(text):
    """read_threads.txt: threads, four times of the stage, four of the reader."""
    for line in part(text, "threads", "#").splitlines():
        times = floats(line)
        yield int(times[0]), times[1:5], times[5:9]


def memory(text):
    """benches/memory.py: (scan, method, stated MB, measured MB)."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.fullmatch(r"[\d.]+", cells[2]):
            yield cells[0], cells[1], float(cells[2]), float(cells[3])
