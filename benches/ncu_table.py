"""Puts Nsight Compute's counters (ncu_counters.sh) beside those of `rayspin-ladder counters --all --json counts.json`.

Arguments: ncu.csv, launches.json, counts.json, and the Markdown file to write. Launches are matched in order by kernel
and grid: kernels of libraries lie between Rayspin's. Each line of the table is a kernel of a variant.
"""

import csv
import json
import re
import sys

WITHIN = 0.02


def read(path):
    lines = [line for line in open(path, newline="") if not line.startswith("==")]
    rows = list(csv.DictReader(lines))
    return [row for row in rows if row.get("ID", "").strip()]


def number(row, name):
    for suffix in (".sum", ".ratio"):
        text = row.get(name + suffix, "").replace(",", "")
        try:
            return float(text)
        except ValueError:
            pass
    return None


def sides(text):
    return [int(part) for part in re.findall(r"\d+", text)][:3]


def key(row):
    name = row["Kernel Name"].split("(")[0].split(" ")[-1]
    return name, tuple(sides(row["Grid Size"])), tuple(sides(row["Block Size"]))


def own(launch):
    return launch["kernel"], tuple(launch["blocks"]), tuple(launch["threads"])


def aligned(rows, ladders):
    """For each ladder and variant the rows of its second run."""
    at = 0
    found = {}

    def take(launches):
        nonlocal at
        taken = []
        for launch in launches:
            here = at
            while here < len(rows) and key(rows[here]) != own(launch):
                here += 1
            if here == len(rows):
                taken.append((launch, None))
                continue
            taken.append((launch, rows[here]))
            at = here + 1
        return taken

    for ladder in ladders:
        take(ladder["opening"])
        for variant in ladder["variants"]:
            first, second = take(variant["first"]), take(variant["second"])
            found[ladder["ladder"], variant["variant"]] = second or first
    return found


def theirs(rows):
    """The sums over launches of one kernel."""
    total = lambda name: sum(number(row, name) or 0.0 for row in rows)
    l1 = "l1tex__t_{}_pipe_lsu_mem_global_op_{}".format
    atomics = ("red", "atom")
    threads, warps = total("smsp__thread_inst_executed"), total("smsp__inst_executed")
    return {
        "load requests": total(l1("requests", "ld")),
        "load sectors": total(l1("sectors", "ld")),
        "store requests": total(l1("requests", "st")),
        "store sectors": total(l1("sectors", "st")),
        "atomic requests": sum(total(l1("requests", op)) for op in atomics),
        "atomic sectors": sum(total(l1("sectors", op)) for op in atomics),
        "shared turns": sum(total(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}") for op in ("ld", "st")),
        "instructions": warps,
        "lanes": threads / warps if warps and threads else number(rows[0], "smsp__thread_inst_executed_per_inst_executed"),
    }


def ours(kernel):
    total = {name: 0.0 for name in ("load requests", "load sectors", "store requests", "store sectors", "atomic requests",
                                    "atomic sectors", "shared turns")}
    for line in kernel["lines"]:
        for access in line["accesses"]:
            if access["space"] == "global":
                total[access["kind"] + " requests"] += access["requests"]
                total[access["kind"] + " sectors"] += access["sectors"]
            # Nsight Compute counts atomics on shared memory elsewhere.
            elif access["space"] == "shared" and access["kind"] in ("load", "store"):
                total["shared turns"] += access["turns"]
    total["instructions"] = kernel["instructions"]["all"]
    total["lanes"] = kernel["lanes_per_instruction"]
    return total


COLUMNS = ["load requests", "load sectors", "store requests", "store sectors", "atomic requests", "atomic sectors", "shared turns",
           "lanes"]


def main(ncu, launches, counts, out):
    rows, ladders = read(ncu), json.load(open(launches))
    found = aligned(rows, ladders)
    lines = ["| ladder, variant, kernel | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    right = {name: [0, 0] for name in COLUMNS}
    missing = []
    for ladder in json.load(open(counts))["ladders"]:
        for variant in ladder["variants"]:
            name = ladder["ladder"], variant["variant"]
            if variant["twin"] or variant["why"]:
                continue
            second = found.get(name)
            if not second:
                missing.append(" ".join(name))
                continue
            for kernel in variant["kernels"]:
                mine = [row for launch, row in second if row and own(launch) == own(kernel)
                        and launch["program"] == kernel["program"]]
                if not mine:
                    missing.append(" ".join(name) + " " + kernel["kernel"])
                    continue
                a, b = ours(kernel), theirs(mine)
                scale = len(mine) / kernel["launches"]
                cells = []
                for column in COLUMNS:
                    x, y = a[column] * (1 if column == "lanes" else scale), b[column]
                    if y is None or (x == 0 and y == 0):
                        cells.append("0")
                        continue
                    good = abs(x - y) <= WITHIN * max(abs(x), abs(y))
                    right[column][good] += 1
                    cells.append(f"{x:.5g}" if good else f"**{x:.5g}** / {y:.5g}")
                lines.append(f"| {name[0]}, {name[1]}, {kernel['kernel']} | " + " | ".join(cells) + " |")
    summary = ["Ours, and ncu's where they differ by more than 2 % (bold).", ""]
    summary += [f"- {name}: {good} of {bad + good} within 2 %" for name, (bad, good) in right.items()]
    summary += ["", f"Without ncu's row: {len(missing)}: {', '.join(missing[:40])}", ""]
    open(out, "w").write("\n".join(summary + lines) + "\n")
    print("\n".join(summary))


if __name__ == "__main__":
    main(*sys.argv[1:5])
