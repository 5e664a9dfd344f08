"""Draws the pictures of the course: python3 docs/course/pictures.py

    pictures.py            writes the SVG files beside this script
    pictures.py --check    fails if a file is not what the script draws

Numbers come from pictures.json, which runs.py writes, and from tables of the repository's READMEs. Pictures of
formulas evaluate the formula here. Plain Python 3.10, no packages.
"""

import json
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
KEPT = FOLDER / "pictures.json"

INK, SOFT, PALE = "#222222", "#777777", "#e8e8e8"
BLUE, ORANGE, GREEN, RED = "#1f77b4", "#e07b00", "#2a8a3e", "#c0392b"
PALE_BLUE, PALE_ORANGE, PALE_GREEN = "#cfe3f3", "#fbe0c0", "#cdeacf"


class Picture:
    """An SVG picture of 700 units width on white."""

    def __init__(self, height, title):
        self.height, self.parts = height, []
        self.title = title

    def add(self, text):
        self.parts.append(text)

    def box(self, x, y, width, height, fill=PALE, stroke=INK, thick=1.0):
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" '
                 f'stroke="{stroke}" stroke-width="{thick}"/>')

    def text(self, x, y, words, size=13, anchor="start", fill=INK, weight="normal"):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
                 f'font-weight="{weight}">{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, stroke=INK, thick=1.2, arrow=False, dash=""):
        tip = ' marker-end="url(#tip)"' if arrow else ""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" '
                 f'stroke-width="{thick}"{tip}{dashes}/>')

    def curve(self, points, stroke, thick=2.0, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.add(f'<polyline points="{places}" fill="none" stroke="{stroke}" stroke-width="{thick}"{dashes}/>')

    def dot(self, x, y, fill, radius=3.5):
        self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"/>')

    def image(self, x, y, width, height, data):
        self.add(f'<image x="{x}" y="{y}" width="{width}" height="{height}" '
                 f'href="data:image/png;base64,{data}"/>')

    def svg(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {self.height}" width="700" '
                f'height="{self.height}" font-family="Helvetica, Arial, sans-serif">\n<title>{escape(self.title)}'
                '</title>\n<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
                f'markerHeight="7" orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="{INK}"/></marker></defs>\n'
                f'<rect width="700" height="{self.height}" fill="#ffffff"/>\n')
        return head + "\n".join(self.parts) + "\n</svg>\n"


def bars(picture, rows, top, left=190, right=560, unit="", logarithmic=False, step=30, floor=None):
    """Horizontal bars: rows of (name, value, label, colour)."""
    values = [value for _, value, _, _ in rows]
    least = floor or min(values) / 2
    for place, (name, value, label, colour) in enumerate(rows):
        y = top + place * step
        share = math.log(value / least) / math.log(max(values) / least) if logarithmic else value / max(values)
        picture.text(left - 8, y + 15, name, 13, "end")
        picture.box(left, y, max(1.0, share * (right - left)), 20, colour, "none")
        picture.text(left + max(1.0, share * (right - left)) + 6, y + 15, label + unit, 13)


def table(document, first_cell):
    """Rows of the first table in a document whose heading row begins with this cell."""
    lines = (ROOT / document).read_text(encoding="utf8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first_cell} |"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("*") for cell in line.strip("|").split("|")])
    return rows[:1] + rows[2:]


# ---------------------------------------------------------------- GPU programming


def threads(_):
    picture = Picture(300, "A grid of blocks, a block of warps, a warp of lanes")
    picture.text(20, 24, "grid: 4 blocks of 256 threads, for n = 1000 elements", 15, weight="bold")
    for block in range(4):
        x = 20 + block * 166
        picture.box(x, 40, 156, 46, PALE_BLUE)
        picture.text(x + 78, 60, f"block {block}", 14, "middle")
        picture.text(x + 78, 78, f"i = {256 * block} … {256 * block + 255}", 12, "middle", SOFT)
    picture.line(186, 86, 20, 102, SOFT, dash="4,3")
    picture.line(342, 86, 676, 102, SOFT, dash="4,3")
    picture.text(20, 120, "block 1: 8 warps of 32 threads", 15, weight="bold")
    for warp in range(8):
        x = 20 + warp * 82.5
        picture.box(x, 126, 76, 40, PALE_ORANGE)
        picture.text(x + 38, 150, f"warp {warp}", 13, "middle")
    picture.line(185, 166, 20, 184, SOFT, dash="4,3")
    picture.line(261, 166, 676, 184, SOFT, dash="4,3")
    picture.text(20, 202, "warp 2: 32 lanes, threadIdx.x = 64 … 95", 15, weight="bold")
    for lane in range(32):
        picture.box(20 + lane * 20.6, 208, 18, 30, PALE_GREEN)
        picture.text(29 + lane * 20.6, 227, str(lane), 11, "middle")
    picture.text(20, 262, "lane 7:  i = blockIdx.x · blockDim.x + threadIdx.x = 1 · 256 + 71 = 327", 14)
    picture.text(20, 286, "threads 1000 … 1023 of block 3 have no element: the test  if (i < n)  leaves them out", 13, fill=RED)
    return picture


def memory(_):
    picture = Picture(330, "Memory spaces of a GPU")
    picture.box(20, 20, 660, 196, "#f7f7f7")
    picture.text(34, 42, "one of 132 multiprocessors (H100)", 14, weight="bold")
    for block in range(2):
        x = 34 + block * 220
        picture.box(x, 54, 206, 148, PALE_BLUE)
        picture.text(x + 10, 72, "block", 13)
        for thread in range(3):
            picture.box(x + 10 + thread * 64, 80, 58, 44, PALE_GREEN)
            picture.text(x + 39 + thread * 64, 98, "thread", 12, "middle")
            picture.text(x + 39 + thread * 64, 115, "registers", 12, "middle")
        picture.box(x + 10, 134, 186, 56, PALE_ORANGE)
        picture.text(x + 103, 156, "shared memory", 13, "middle")
        picture.text(x + 103, 176, "of the block's threads", 12, "middle", SOFT)
    picture.box(474, 54, 192, 66, "#ffffff")
    picture.text(570, 82, "first-level cache", 13, "middle")
    picture.text(570, 102, "and texture unit", 12, "middle", SOFT)
    picture.box(474, 134, 192, 66, "#ffffff")
    picture.text(570, 162, "constant cache", 13, "middle")
    picture.text(570, 182, "one word a turn for a warp", 12, "middle", SOFT)
    picture.line(350, 216, 350, 236, thick=2, arrow=True)
    picture.box(20, 238, 660, 28, "#ffffff")
    picture.text(350, 257, "second-level cache, of all multiprocessors", 13, "middle")
    picture.line(350, 266, 350, 280, thick=2, arrow=True)
    picture.box(20, 282, 660, 36, PALE)
    picture.text(350, 305, "global memory: arrays · local memory of threads · constants · textures", 13, "middle")
    return picture


def coalescing(kept):
    picture = Picture(330, "Sectors that one load of a warp moves")
    ways = [("gpu-copy", "neighbours", 1, 0), ("gpu-offset", "neighbours, 1 word later", 1, 1),
            ("gpu-stride", "32 words apart", 32, 0)]
    for row, (variant, name, stride, offset) in enumerate(ways):
        y = 30 + row * 92
        counts = kept["order"][variant]
        picture.text(20, y, f"{name}: {counts['sectors']:,} sectors in {counts['requests']:,} requests, "
                     f"{counts['sectors'] / counts['requests']:.0f} a request", 14, weight="bold")
        touched = {(offset + lane * stride) // 8 for lane in range(32)}
        shown = 5 if stride == 1 else 32
        width = 120 if stride == 1 else 20
        for sector in range(shown):
            x = 20 + sector * (width + (6 if stride == 1 else 0.6))
            hit = sector in touched if stride == 1 else True
            picture.box(x, y + 12, width, 34, PALE_BLUE if hit else "#ffffff")
            for word in range(8):
                asked = stride == 1 and 0 <= 8 * sector + word - offset < 32 or stride > 1 and word == 0
                if asked:
                    picture.box(x + word * width / 8 + 1, y + 16, max(2.5, width / 8 - 2), 26, BLUE, "none")
        picture.text(20, y + 64, "one box: a sector of 32 bytes.  dark: words that a lane asks for", 12, fill=SOFT)
    picture.text(20, 318, "Counted: copy of 65,536 words, rayspin-ladder counters access --case order --size 2^16", 12,
                 fill=SOFT)
    return picture


def banks(kept):
    picture = Picture(340, "Banks of a column of a tile")
    for side, (pitch, name, variant) in enumerate([(32, "rows of 32 words", "gpu-coalesced"),
                                                   (33, "rows of 33 words", "gpu-padded")]):
        left = 24 + side * 345
        turns = kept["tile"][variant]
        picture.text(left, 26, f"{name}: {turns['turns'] / turns['requests']:.0f} turns a load", 15, weight="bold")
        picture.text(left, 46, "numbers: the bank of each word (place mod 32)", 12, fill=SOFT)
        for row in range(8):
            picture.text(left + 26, 74 + row * 28, f"row {row}", 11, "end", SOFT)
            for column in range(8):
                bank = (row * pitch + column) % 32
                fill = PALE_BLUE if column else (RED, GREEN)[side]
                picture.box(left + 32 + column * 29, 56 + row * 28, 27, 25, fill)
                picture.text(left + 45.5 + column * 29, 73 + row * 28, str(bank), 11, "middle",
                             INK if column else "#ffffff")
    picture.text(24, 300, "The first 8 rows and columns. Left, a column is one bank: 32 lanes wait for each other.", 13)
    picture.text(24, 320, "Right, each row begins one bank later: the column lies in 32 different banks.", 13)
    return picture


def occupancy(_):
    # The rules of the CUDA occupancy calculator for 9.0: 65,536 registers, given to a warp in pieces of 256;
    # at most 64 warps and 32 blocks.
    def warps(registers, threads):
        of_warp = -(-registers * 32 // 256) * 256
        of_block = threads // 32
        return min(65536 // of_warp // of_block, 64 // of_block, 32) * of_block

    picture = Picture(330, "Warps that a multiprocessor holds, by registers of a thread")
    left, right, top, bottom = 70, 670, 40, 270
    across = lambda registers: left + (registers - 16) / (128 - 16) * (right - left)
    down = lambda count: bottom - count / 64 * (bottom - top)
    for count in range(0, 65, 16):
        picture.line(left, down(count), right, down(count), PALE)
        picture.text(left - 8, down(count) + 5, str(count), 12, "end")
    for registers in range(16, 129, 16):
        picture.text(across(registers), bottom + 18, str(registers), 12, "middle")
    for threads_of_block, colour, dash in [(128, BLUE, ""), (512, ORANGE, "6,3")]:
        points = []
        for registers in range(16, 129):
            points += [(across(registers), down(warps(registers, threads_of_block))),
                       (across(min(registers + 1, 128)), down(warps(registers, threads_of_block)))]
        picture.curve(points, colour, 2.5, dash)
    picture.text(left, 24, "warps that a multiprocessor holds (at most 64)", 13)
    picture.text(right, bottom + 38, "registers of a thread", 13, "end")
    picture.text(470, 62, "blocks of 128 threads", 13, fill=BLUE)
    picture.text(470, 80, "blocks of 512 threads (dashed)", 13, fill=ORANGE)
    before, after = warps(40, 512), warps(41, 512)
    picture.text(left, bottom + 56, f"Blocks of 512 threads: {before} warps with 40 registers, {after} with 41. "
                 f"One register costs {before - after} warps.", 13, fill=RED)
    return picture


def divergence(kept):
    picture = Picture(260, "Active lanes at a branch")
    for row, (name, file) in enumerate([("even and odd lanes part", "parity"), ("even and odd warps part", "warps")]):
        y = 30 + row * 112
        counts = kept["branch"][file]
        picture.text(20, y, f"{name}: {counts['splits']:,.0f} splits, {counts['requests']:,} loads, "
                     f"moved / asked {counts['moved']:.2f}", 14, weight="bold")
        for step, words in enumerate(["if (…)", "way A", "way B", "after"]):
            top = y + 10 + step * 19
            if file == "warps" and step == 2:
                picture.text(102, top + 13, "way B: no lane of this warp goes here", 12, fill=SOFT)
                picture.text(20, top + 13, "", 12)
                continue
            picture.text(92, top + 13, words, 12, "end")
            for lane in range(32):
                active = step in (0, 3) or file == "warps" or lane % 2 == step - 1
                picture.box(100 + lane * 18, top, 15, 15, BLUE if active else "#ffffff", SOFT, 0.7)
    picture.text(20, 250, "Rows: time. Boxes: the 32 lanes of a warp; filled: active. Counted: 256 × 256 elements, files of the chapter",
                 12, fill=SOFT)
    return picture


def atomics(kept):
    picture = Picture(270, "Lanes that add to one address")
    counts = kept["atomics"]
    picture.text(20, 26, "lanes of a warp at the most wanted address, of 32", 15, weight="bold")
    bars(picture, [(f"{name} samples", counts[name]["same"], f"{counts[name]['same']:.1f}", colour)
                   for name, colour in [("uniform", GREEN), ("walk", ORANGE), ("constant", RED)]], 40)
    picture.text(20, 154, "atomic requests to global memory, 20,000 samples of the walk", 15, weight="bold")
    bars(picture, [("step 2: each sample", counts["walk"]["requests"], f"{counts['walk']['requests']:.0f}", RED),
                   ("4 blocks, own tables", counts["own"]["requests"], f"{counts['own']['requests']:.0f}", GREEN)], 168)
    picture.text(20, 256, "Counted: rayspin-ladder counters histogram --own, files of the chapter", 12, fill=SOFT)
    return picture


def streams(_):
    rows = (ROOT / "crates/ladders/primitives/src/transfers/README.md").read_text(encoding="utf8")
    many, one = re.search(r"\((1\.\d+) and [\d.]+ ms; one part\s+(3\.\d+)\)", rows).groups()
    picture = Picture(290, "One part and four parts on three engines")
    unit = 172
    for block, parts in enumerate([1, 4]):
        top = 34 + block * 126
        time = (parts + 2) / parts
        picture.text(20, top - 10, f"{parts} part{'s' if parts > 1 else ''}: ({parts} + 2) / {parts} = {time:g} × the longest step", 14,
                     weight="bold")
        for row, (name, colour) in enumerate([("copy to the GPU", PALE_BLUE), ("kernel", PALE_GREEN), ("copy back", PALE_ORANGE)]):
            picture.text(120, top + 17 + row * 28, name, 12, "end")
            for part in range(parts):
                x = 130 + (part + row) * unit / parts
                picture.box(x, top + row * 28, unit / parts - 1, 24, colour)
                picture.text(x + unit / parts / 2, top + 17 + row * 28, str(part), 12, "middle")
        picture.line(130, top + 88, 130 + time * unit, top + 88, SOFT, arrow=True)
        picture.text(136 + time * unit, top + 92, "time", 12, fill=SOFT)
    picture.text(20, 280, f"Measured on an H100 (ladder transfers, case overlap): one part {one} ms, 32 parts {many} ms", 13)
    return picture


def textures(kept):
    picture = Picture(330, "What a texture returns between and beyond its texels")
    data = kept["texture"]
    places = data["places"]
    panels = [("point, clamp", BLUE), ("linear, clamp", GREEN), ("linear, border", SOFT), ("linear, wrap", ORANGE),
              ("linear, mirror", RED)]
    for number, (name, colour) in enumerate(panels):
        left, top = 30 + number % 3 * 226, 40 + number // 3 * 146
        across = lambda place: left + (place + 2) / 8 * 200
        down = lambda value: top + 96 - value / 45 * 96
        picture.text(left, top - 8, name, 14, weight="bold")
        picture.box(across(0), top, across(4) - across(0), 96, "#f5f5f5", "none")
        picture.line(left, top + 96, left + 200, top + 96, SOFT)
        picture.curve([(across(p), down(v)) for p, v in zip(places, data[name])], colour, 2.2)
        for texel, value in enumerate([10, 20, 30, 40]):
            picture.dot(across(texel + 0.5), down(value), INK, 3)
        for place in (-2, 0, 4, 6):
            picture.text(across(place), top + 111, str(place), 11, "middle", SOFT)
    picture.text(482, 210, "dots: the four texels,", 12, fill=SOFT)
    picture.text(482, 227, "at 0.5, 1.5, 2.5 and 3.5", 12, fill=SOFT)
    picture.text(482, 244, "grey: inside the texture", 12, fill=SOFT)
    picture.text(482, 261, "lines: from a run of the", 12, fill=SOFT)
    picture.text(482, 278, "chapter's program", 12, fill=SOFT)
    return picture


def tuning(_):
    rows = table("crates/algorithms/kernels/src/nudft/README.md", "unroll, threads")
    points = [int(re.match(r"\d+", cell)[0]) for cell in rows[0][1:]]
    picture = Picture(350, "Time of Q by points of a launch")
    left, right, top, bottom = 60, 500, 40, 290
    across = lambda place: left + place / (len(points) - 1) * (right - left)
    down = lambda time: bottom - math.log(time / 2) / math.log(25 / 2) * (bottom - top)
    for time in (2, 3, 5, 10, 20):
        picture.line(left, down(time), right, down(time), PALE)
        picture.text(left - 8, down(time) + 5, f"{time}", 12, "end")
    for place, count in enumerate(points):
        picture.text(across(place), bottom + 18, str(count), 12, "middle")
    ends = []
    for row, colour in zip(rows[1:], [BLUE, RED, ORANGE, GREEN, "#7d3c98"]):
        times = [float(cell.strip("*")) for cell in row[1:]]
        picture.curve([(across(place), down(time)) for place, time in enumerate(times)], colour)
        for place, time in enumerate(times):
            picture.dot(across(place), down(time), colour, 3)
        unroll, threads_of_block = row[0].split(", ")
        ends.append((down(times[-1]), f"unroll {unroll}, {threads_of_block} threads", colour))
    last = 0
    for y, words, colour in sorted(ends):
        last = max(y + 4, last + 17)
        picture.text(right + 10, last, words, 13, fill=colour)
    picture.text(20, 24, "ms for Q of 64³ voxels and 2048 samples, gpu-sfu, one H100 (logarithmic)", 14, weight="bold")
    picture.text(right, bottom + 38, "samples of a launch (points)", 13, "end")
    return picture


def one_model(_):
    picture = Picture(300, "A block of threads as two loops")
    picture.text(20, 26, "CUDA: a block of 4 threads", 15, weight="bold")
    for thread in range(4):
        x = 24 + thread * 74
        picture.box(x, 44, 64, 70, PALE_BLUE)
        picture.text(x + 32, 72, "t[i] = …", 12, "middle")
        picture.text(x + 32, 100, f"i = {thread}", 12, "middle", SOFT)
        picture.box(x, 146, 64, 70, PALE_GREEN)
        picture.text(x + 32, 174, "= t[3−i]", 12, "middle")
        picture.text(x + 32, 202, f"i = {thread}", 12, "middle", SOFT)
    picture.box(20, 122, 296, 16, RED, "none")
    picture.text(168, 135, "__syncthreads()", 12, "middle", "#ffffff")
    picture.line(330, 130, 384, 130, thick=2, arrow=True)
    picture.text(394, 26, "CPU: two loops", 15, weight="bold")
    picture.box(394, 44, 286, 70, PALE_BLUE)
    picture.text(408, 74, "for (i = 0; i < 4; i++)", 14)
    picture.text(432, 98, "t[i] = …;", 14)
    picture.text(408, 134, "the loop ends: all have written", 12, fill=RED)
    picture.box(394, 146, 286, 70, PALE_GREEN)
    picture.text(408, 176, "for (i = 0; i < 4; i++)", 14)
    picture.text(432, 200, "… = t[3−i];", 14)
    picture.text(20, 250, "The barrier is where the loop is split. A variable that lives across it becomes an array", 13)
    picture.text(20, 268, "over threads. Between barriers the turns of the loop are independent: vectors may run them.", 13)
    return picture


# ---------------------------------------------------------------- MRI


def phases(_):
    picture = Picture(250, "The real part of the phase factor for three samples")
    for number, (kx, ky) in enumerate([(1, 0), (0, 2), (3, 2)]):
        left = 20 + number * 228
        picture.text(left, 24, f"k = ({kx}, {ky})", 14, weight="bold")
        side, size = 20, 10.4
        for row in range(side):
            for column in range(side):
                turns = kx * (column - side // 2) / side + ky * (row - side // 2) / side
                grey = round(127.5 + 127.5 * math.cos(2 * math.pi * turns))
                picture.add(f'<rect x="{left + column * size:.1f}" y="{34 + row * size:.1f}" width="{size + 0.3:.1f}" '
                            f'height="{size + 0.3:.1f}" fill="#{grey:02x}{grey:02x}{grey:02x}"/>')
    return picture


def ladder_of_q(_):
    rows = table("crates/algorithms/kernels/src/nudft/README.md", "row")
    column = {name: rows[0].index(name) for name in ("Q", "Q, s")}
    picture = Picture(310, "Q: the lecture's times and ours")
    picture.text(20, 24, "Q of the lecture's scan, 6.7e12 pairs, seconds (logarithmic)", 15, weight="bold")
    shown = []
    for row in rows[1:]:
        theirs = re.match(r"[\d.]+", row[column["Q"]])
        ours = row[column["Q, s"]].replace(",", "")
        name = row[0] or row[rows[0].index("here")].strip("*")
        if theirs and row[0] != "CPU double":
            shown.append((f"lecture: {name}", 60 * float(theirs[0]), f"{60 * float(theirs[0]):,.0f}", PALE_ORANGE))
        if re.match(r"[\d.]+", ours) and row[0] != "CPU double" and "one thread" not in row[rows[0].index("here")]:
            shown.append((f"H100: {row[rows[0].index('here')].split(',')[0].strip('*`')}", float(ours), ours, BLUE))
    bars(picture, shown, 36, unit=" s", logarithmic=True, step=27, floor=0.03)
    return picture


def two_loops(_):
    picture = Picture(260, "A thread for each sample, or for each voxel")
    for side, (title, colour) in enumerate([("a thread a sample: scatter", RED), ("a thread a voxel: gather", GREEN)]):
        left = 20 + side * 350
        picture.text(left, 24, title, 15, weight="bold")
        for place in range(4):
            picture.box(left + place * 78, 40, 64, 30, PALE_ORANGE)
            picture.text(left + 32 + place * 78, 60, f"d[{place}]", 13, "middle")
            picture.box(left + place * 78, 160, 64, 30, PALE_BLUE)
            picture.text(left + 32 + place * 78, 180, f"ρ[{place}]", 13, "middle")
        for other in range(4):
            if side == 0:
                picture.line(left + 32 + 78, 70, left + 32 + other * 78, 158, colour, 1.6, True)
                picture.line(left + 32 + 156, 70, left + 32 + other * 78, 158, SOFT, 1.0, True, "4,3")
            else:
                picture.line(left + 32 + other * 78, 70, left + 32 + 78, 158, colour, 1.6, True)
        words = ["each voxel is written by all threads:", "atomic additions in memory"] if side == 0 else [
            "each voxel is written once, by one thread:", "its sum stays in registers"]
        picture.text(left, 218, words[0], 13)
        picture.text(left, 238, words[1], 13)
    return picture


def reconstructions(kept):
    picture = Picture(500, "The truth, gridding and least squares")
    data = kept["mri"]
    for column, name in enumerate(["truth", "gridding", "least squares"]):
        left = 10 + column * 228
        words = name if name == "truth" else f"{name}: error {data[name]['error']:.1f} %"
        picture.text(left, 22, words, 14, weight="bold")
        picture.image(left, 32, 222, 222, data[name]["picture"])
        if name != "truth":
            picture.image(left, 262, 222, 222, data[name]["difference"])
    picture.text(10, 300, "Right: the difference from", 13)
    picture.text(10, 318, "the truth, four times as bright.", 13)
    picture.text(10, 350, "128 spokes of 128², one coil,", 13, fill=SOFT)
    picture.text(10, 368, "SNR 50; a factor is fitted.", 13, fill=SOFT)
    return picture


# ---------------------------------------------------------------- CT


def ramp(_):
    # A disc of radius 0.6 has chords 2 √(0.36 − s²); the ramp's kernel at spacing h is 1/(4h²) at 0,
    # −1/(π² n² h²) at odd n and 0 at even n.
    count, radius = 161, 0.6
    step = 2.0 / (count - 1)
    places = [-1 + step * i for i in range(count)]
    row = [2 * math.sqrt(max(0.0, radius ** 2 - s * s)) for s in places]
    kernel = lambda n: 1 / (4 * step ** 2) if n == 0 else -1 / (math.pi * n * step) ** 2 if n % 2 else 0.0
    filtered = [step * sum(kernel(i - j) * row[j] for j in range(count)) for i in range(count)]
    picture = Picture(270, "A view of a disc before and after the ramp filter")
    for side, (title, values, colour) in enumerate([("the view: chords of a disc", row, BLUE),
                                                    ("the same, filtered by the ramp", filtered, GREEN)]):
        left, top, height = 30 + side * 345, 40, 180
        low, high = min(0.0, min(values)), max(values)
        down = lambda value: top + height - (value - low) / (high - low) * height
        picture.text(left, 24, title, 15, weight="bold")
        picture.line(left, down(0), left + 310, down(0), SOFT, dash="4,3")
        picture.curve([(left + (s + 1) / 2 * 310, down(v)) for s, v in zip(places, values)], colour)
        picture.text(left, 244, f"from {low:.2f} to {high:.2f}; dashed: 0", 12, fill=SOFT)
    picture.text(30, 264, "Outside the disc the filtered view is negative: it takes away what back-projection smears there.", 13)
    return picture


def views(kept):
    picture = Picture(260, "Back-projections of few and many views")
    for column, (name, data) in enumerate(kept["views"].items()):
        left = 10 + column * 172.5
        words = "truth" if name == "truth" else f"{name} views: {data['error']:.0f} %"
        picture.text(left, 24, words, 14, weight="bold")
        picture.image(left, 34, 166, 166, data["picture"])
    picture.text(10, 224, "128² pixels, parallel rays, filtered back-projection; the percentages are errors against the truth.", 13)
    picture.text(10, 244, "Each view smears its filtered row across the image. Few views leave streaks.", 13)
    return picture


def cone(kept):
    picture = Picture(350, "Load requests of back-projection")
    counts = kept["backproject"]
    picture.text(20, 24, "load requests of warps: 17³ voxels, 3 views of 23² pixels", 15, weight="bold")
    bars(picture, [(name, counts[name], f"{counts[name]:,.0f}", colour) for name, colour in
                   [("gpu-rays", RED), ("gpu-columns", ORANGE), ("gpu-texture", GREEN)]], 38, step=28)
    source = (60, 240)
    picture.dot(*source, RED, 5)
    picture.text(44, 266, "source", 12)
    picture.line(500, 158, 500, 322, thick=3)
    picture.text(510, 246, "detector", 12)
    for k in range(4):
        y = 204 + k * 24
        picture.box(270, y - 11, 24, 22, PALE_BLUE)
        end = source[1] + (y - source[1]) / (282 - source[0]) * (500 - source[0])
        picture.line(*source, 500, end, SOFT, 0.8)
        picture.dot(500, end, BLUE, 3.5)
    picture.text(282, 340, "a column of voxels along z falls on one column of pixels", 12, "middle", SOFT)
    return picture


def rendering(kept):
    picture = Picture(400, "A ray through a volume, and three pictures")
    picture.dot(40, 80, RED, 5)
    picture.text(20, 104, "eye", 13)
    picture.box(240, 30, 260, 110, "#f2f7fb")
    for plane in range(14):
        x = 250 + plane * 18.6
        picture.line(x, 30, x, 140, PALE_BLUE)
        picture.dot(x, 84 + (x - 40) * 0.02 - 4, BLUE, 3.2)
    picture.line(40, 80, 660, 92.4, INK, 1.3, True)
    picture.text(250, 160, "the ray is sampled once in each plane of voxels", 12, fill=SOFT)
    picture.text(520, 124, "sum, largest value,", 12, fill=SOFT)
    picture.text(520, 140, "or first crossing", 12, fill=SOFT)
    for column, (name, data) in enumerate(kept["renders"].items()):
        picture.text(10 + column * 230, 190, name, 14, weight="bold")
        picture.image(10 + column * 230, 198, 196, 196, data)
    return picture


PICTURES = {
    "01-threads": threads, "02-memory": memory, "03-coalescing": coalescing, "04-banks": banks, "05-occupancy": occupancy,
    "06-divergence": divergence, "07-atomics": atomics, "08-streams": streams, "09-textures": textures, "10-tuning": tuning,
    "11-one-model": one_model, "mri-1-phases": phases, "mri-2-q": ladder_of_q, "mri-3-loops": two_loops,
    "mri-4-images": reconstructions, "ct-1-ramp": ramp, "ct-2-views": views, "ct-3-cone": cone, "ct-4-rendering": rendering,
}

def main():
    kept = json.loads(KEPT.read_text(encoding="utf8"))
    stale = []
    for name, draw in PICTURES.items():
        path, drawn = FOLDER / f"{name}.svg", draw(kept).svg()
        if "--check" not in sys.argv:
            path.write_text(drawn, encoding="utf8")
        elif not path.exists() or path.read_text(encoding="utf8") != drawn:
            stale.append(path.name)
    known = {f"{name}.svg" for name in PICTURES}
    stale += sorted(path.name for path in FOLDER.glob("*.svg") if path.name not in known)
    if stale:
        sys.exit(f"not what pictures.py draws: {', '.join(stale)}")


if __name__ == "__main__":
    main()
