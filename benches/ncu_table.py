"""Puts Nsight Compute's counters (ncu_counters.sh) beside those of `rayspin-ladder counters --all --json counts.json`.

python3 benches/ncu_table.py --ncu ncu.csv … --launches launches.json … --counts counts.json --code code.json --out ncu.md

Launches are matched in order by kernel and grid: kernels of libraries lie between Rayspin's. Several files of a kind
are of one run in parts, in order. Each line of the table is a kernel of a variant. A line with a miss says why, from
the kernel's machine code (machine_code.py) and from how many instructions both count.
"""

import argparse
import csv
import json
import re
import textwrap

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
        "lanes": threads / warps if warps else None,
        "lanes without predicates": total("smsp__thread_inst_executed_pred_on") / warps if warps else None,
    }


def ours(kernel):
    total = {name: 0.0 for name in ("load requests", "load sectors", "store requests", "store sectors", "atomic requests",
                                    "atomic sectors", "shared turns")}
    for line in kernel["lines"]:
        for access in line["accesses"]:
            if access["space"] == "global":
                total[access["kind"] + " requests"] += access["requests"]
                # Of atomic operations ncu counts a sector again for each lane that waits for another at its address.
                total[access["kind"] + " sectors"] += access["turns" if access["kind"] == "atomic" else "sectors"]
            # Nsight Compute counts atomics on shared memory elsewhere.
            elif access["space"] == "shared" and access["kind"] in ("load", "store"):
                total["shared turns"] += access["turns"]
    total["instructions"] = kernel["instructions"]["all"]
    total["lanes"] = kernel["lanes_per_instruction"]
    return total


COLUMNS = ["load requests", "load sectors", "store requests", "store sectors", "atomic requests", "atomic sectors", "shared turns",
           "lanes"]


def sites(kernel, space, kind):
    """Places of the source that access a memory: lines times arrays."""
    return sum(access["space"] == space and access["kind"] == kind for line in kernel["lines"] for access in line["accesses"])


def widths(code, *names):
    """Loads or stores of the machine code: `5 LDG, 2 of 128 bits`."""
    found = {}
    for key, count in code["memory"].items():
        name, width = key.split(".")
        if name in names:
            found.setdefault(width, [0, name])[0] += count
    wide = [f"{count} of {width} bits" for width, (count, _) in sorted(found.items()) if width in ("64", "128")]
    total = sum(count for count, _ in found.values())
    return f"{total} {names[0]}" + (f", {', '.join(wide)}" if wide else "")


def why(column, x, y, working, kernel, code, ratio):
    """Why a column is off, with what shows it: its kind, and the words. `working`: ncu's lanes that no predicate switches off."""
    blocks = kernel["blocks"][0] * kernel["blocks"][1] * kernel["blocks"][2]
    if kernel["counted_blocks"] < blocks and column != "lanes":
        return "sampled", f"{kernel['counted_blocks']} of {blocks} blocks were counted"
    if column == "lanes":
        # Both numbers of instructions are of warps.
        more = f"ours counts {ratio:.2f} times ncu's instructions"
        if working <= x * (1 + WITHIN) and x < y and code["predicated"]:
            return "predicates", (f"of ncu's {y:.5g} active lanes {working:.5g} are not predicated off ({code['predicated']} of "
                                  f"{code['instructions']} instructions have a predicate)")
        if y > x:
            return "weights", f"more of ncu's instructions lie where all lanes are active; {more}"
        return "weights", (f"more of ncu's instructions lie where few lanes are active ({code['branches']} branches); {more}")
    if column.startswith("load"):
        places, loads = sites(kernel, "global", "load"), widths(code, "LDG", "LD")
        if y < x:
            return "loads kept", f"values stay in registers: {loads} for {places} places of the source"
        return "loads added", f"loads ahead of a branch, or under one for both sides: {loads} for {places} places of the source"
    if column.startswith("store"):
        return "stores", f"{widths(code, 'STG', 'ST')} for {sites(kernel, 'global', 'store')} places of the source"
    if column.startswith("atomic"):
        if votes := code["memory"].get("VOTE.32", 0):
            return "atomics", f"one lane adds for all lanes of the warp ({votes} votes of the warp in the machine code)"
        return "order", "the kernel looks whether a bin is full before it adds; the emulator runs threads one after another, so that more additions are skipped"
    loads, stores = widths(code, "LDS"), widths(code, "STS")
    places = sites(kernel, "shared", "load"), sites(kernel, "shared", "store")
    return "shared", f"{loads}, {stores} for {places[0]} and {places[1]} places of the source"


KINDS = {
    "predicates": "lanes: a short branch has no jump in machine code. Its instructions stand under a predicate, and ncu's "
    "active lanes include those that the predicate switches off. Ours leave them out. They are fewer than ncu's active lanes, "
    "and above its lanes that are not predicated off, or at most 2 % below those.",
    "weights": "lanes: each instruction counts, and the two compilers make different numbers of instructions of the same line.",
    "loads kept": "loads: NVRTC keeps a value in registers where the host's compiler reads it again.",
    "loads added": "loads: NVRTC reads ahead of a branch, or once more.",
    "stores": "stores: NVRTC splits a wide store or joins narrow ones.",
    "atomics": "atomics: NVRTC adds what the lanes of a warp add to one address by one of them.",
    "order": "atomics: the kernel looks whether a bin is full before it adds. The emulator runs threads one after another, so that more "
    "additions are skipped.",
    "sampled": "ours counted some blocks of the grid, and scaled.",
    "shared": "shared memory: NVRTC joins neighbouring accesses into wide ones, or keeps values in registers.",
    "host memory": "memory of the host: ncu counts it as memory of the system, not as global memory.",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("ncu", "launches", "counts"):
        parser.add_argument("--" + name, nargs="+", required=True)
    parser.add_argument("--code", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    rows = [row for path in args.ncu for row in read(path)]
    ladders = [ladder for path in args.launches for ladder in json.load(open(path))]
    found = aligned(rows, ladders)
    codes = iter(json.load(open(args.code)))
    for ladder in ladders:
        own_codes = [next(codes)["kernels"] for _ in ladder["programs"]]
        for launches in (variant[time] for variant in ladder["variants"] for time in ("first", "second")):
            for launch in launches:
                launch["code"] = own_codes[launch["program_number"]][launch["kernel"]]
    lines = ["| ladder, variant, kernel | " + " | ".join(COLUMNS) + " | why |", "|---" * (len(COLUMNS) + 2) + "|"]
    right = {name: [0, 0] for name in COLUMNS}
    missing, kinds = [], {}
    for ladder in (ladder for path in args.counts for ladder in json.load(open(path))["ladders"]):
        for variant in ladder["variants"]:
            name = ladder["ladder"], variant["variant"]
            if variant["twin"] or variant["why"]:
                continue
            second = found.get(name)
            if not second:
                missing.append(" ".join(name))
                continue
            for kernel in variant["kernels"]:
                mine = [(launch, row) for launch, row in second if row and own(launch) == own(kernel)
                        and launch["program"] == kernel["program"]]
                if not mine:
                    missing.append(" ".join(name) + " " + kernel["kernel"])
                    continue
                code = mine[0][0]["code"]
                a, b = ours(kernel), theirs([row for _, row in mine])
                scale = len(mine) / kernel["launches"]
                ratio = a["instructions"] * scale / b["instructions"] if b["instructions"] else 0
                cells, reasons = [], {}
                for column in COLUMNS:
                    x, y = a[column] * (1 if column == "lanes" else scale), b[column]
                    if y is None or (x == 0 and y == 0):
                        cells.append("0")
                        continue
                    good = abs(x - y) <= WITHIN * max(abs(x), abs(y))
                    right[column][good] += 1
                    cells.append(f"{x:.5g}" if good else f"**{x:.5g}** / {y:.5g}")
                    if not good:
                        kind, words = why(column, x, y, b["lanes without predicates"], kernel, code, ratio)
                        if min(x, y) == 0:
                            kind, words = "host memory", "pinned memory of the host"
                        kinds[kind] = kinds.get(kind, 0) + 1
                        reasons[words] = None
                lines.append(f"| {name[0]}, {name[1]}, {kernel['kernel']} | " + " | ".join(cells) + f" | {'; '.join(reasons)} |")
    summary = ["Ours, and ncu's where they differ by more than 2 % (bold).", ""]
    summary += [f"- {name}: {good} of {bad + good} within 2 %" for name, (bad, good) in right.items()]
    summary += ["", "Misses by kind:", ""]
    wrapped = lambda text, indent: textwrap.fill(text, 108, subsequent_indent=indent, break_on_hyphens=False)
    by_count = sorted(kinds.items(), key=lambda one: -one[1])
    summary += [wrapped(f"- {count}: {KINDS[kind]}", "  ") for kind, count in by_count]
    summary += ["", wrapped(f"Without ncu's row: {len(missing)}: {', '.join(missing)}", ""), ""]
    open(args.out, "w").write("\n".join(summary + lines) + "\n")
    print("\n".join(summary))


if __name__ == "__main__":
    main()
