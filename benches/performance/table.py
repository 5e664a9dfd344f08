"""A table of one raw file, the list of all tables, and the forms of numbers."""

import decimal
import pathlib
import re
import textwrap

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
WIDTH = 110
MONTHS = "January February March April May June July August September October November December".split()
TABLES = {}


class Table:
    """The rows of one raw file. `command` must stand in that file; `build` is the day's build unless the file says another."""

    def __init__(self, file, device, command, note="", build="the build of that day"):
        self.file, self.device, self.command, self.note, self.build = file, device, command, note, build
        self.text = (RESULTS / file).read_text(encoding="utf-8")
        self.rows, self.compared = [], []
        if command not in self.text:
            raise SystemExit(f"{file} does not hold the command {command!r}")

    def row(self, *cells):
        """The first row is the head."""
        self.rows.append([str(cell) for cell in cells])

    def compare(self, value, group, item):
        """Notes the ratio `time of the peer / time of Rayspin` of one row; the block `losses` lists the ratios below 1 by group."""
        self.compared.append((group, item, value))
        return slower(value)

    def ratio(self, value, group, item):
        """The ratio as text, bold where Rayspin is slower."""
        text = f"{value:.0f}×" if value >= 100 else f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"
        return f"**{text}**" if self.compare(value, group, item) else text

    def lines(self):
        """The caption and the rows as Markdown."""
        if len(self.rows) < 2 or any(len(row) != len(self.rows[0]) for row in self.rows):
            raise SystemExit(f"a table of {self.file} has no rows, or rows of different lengths")
        year, month, day = map(int, self.file.split("/")[0].split("-")[:3])
        link = f"([raw](../benches/results/{self.file}))"
        caption = f"{self.device}. {day} {MONTHS[month - 1]} {year}, {self.build}. Command: `{self.command}` {link}. {self.note}"
        head, *rows = ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in self.rows]
        return [*wrap(caption), "", head, "|" + "---|" * len(self.rows[0]), *rows]


def table(*about, **more):
    """Registers a function that fills a table in. The table has the function's name."""

    def register(fill):
        def make():
            made = Table(*about, **more)
            fill(made)
            return made

        TABLES[fill.__name__.replace("_", "-")] = make
        return fill

    return register


def wrap(text, indent=""):
    return textwrap.wrap(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)


def slower(ratio):
    return round(ratio, 2) < 1


def number(value):
    """At most three significant digits, rounded half up as by hand, without zeros that the raw file does not have."""
    exact = decimal.Decimal(f"{value:.12g}")
    if not exact:
        return "0"
    place = min(exact.adjusted() - 2, 0)
    return f"{exact.quantize(decimal.Decimal(1).scaleb(place), decimal.ROUND_HALF_UP):f}".rstrip("0").rstrip(".") if place else f"{exact:.0f}"


def seconds(value):
    """A time in s, ms or µs."""
    unit, size = next((unit, size) for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)) if value >= size * 0.1)
    return f"{number(value / size)} {unit}"


def span(values, digits, unit=""):
    """The least and the largest value."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return (low if low == high else f"{low} to {high}") + unit


def count(points):
    """1000000 → 10⁶; a smaller count, or one with more than one digit before its zeros, stays as it is."""
    power = len(str(points)) - 1
    if power < 6 or points % 10**power:
        return f"{points:,}"
    lead, small = points // 10**power, "⁰¹²³⁴⁵⁶⁷⁸⁹"[power]
    return f"10{small}" if lead == 1 else f"{lead}·10{small}"


def size(grid):
    """512x512 → 512²; other shapes stay as they are."""
    parts = re.split(r"x|, ", grid)
    return parts[0] + {2: "²", 3: "³"}[len(parts)] if len(set(parts)) == 1 and len(parts) > 1 else " × ".join(parts)


def title(text):
    """`256 x 256` → 256 × 256, `64^3` → 64³."""
    return text.replace("^3", "³").replace("^2", "²").replace(" x ", " × ")


H100 = "One NVIDIA H100 80GB HBM3"
