"""Holds predicted times against measured ones.

python3 benches/counters_order.py --counts COUNTS.json … --times LADDERS.json … --why WHY.txt --out OUT.md

COUNTS.json is what `rayspin-ladder counters NAME --measured --sampled --on GPU --json` wrote, LADDERS.json what a run
of the same problems on that GPU wrote. Of the pairs of variants of a ladder whose measured times differ by more than
1.3 times, it counts those that the prediction has in the same order; of all variants, those within 2 times.

Each line of WHY.txt names a ladder and a variant and says why its prediction is off: `sad gpu-packed: …`. A miss
without a line, and a line without a miss, is an error.
"""

import argparse
import json
import sys
import textwrap


def measured(paths):
    """Seconds by GPU (as --on names it), ladder, problem and variant."""
    found = {}
    for path in paths:
        document = json.load(open(path))
        for run in document.get("runs") or document.get("climbs"):
            gpu = next((name for name in ("H100", "H200") if name in run["device"]), None)
            for step in run["steps"]:
                timed = isinstance(step["outcome"], dict) and step["outcome"].get("timed")
                if gpu and timed:
                    found[gpu.lower(), run["ladder"], run["problem"], step["name"]] = timed["timing"]["median"]
    return found


def point(text):
    """An item of a list, wrapped."""
    return textwrap.fill("- " + text, 108, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def reasons(path):
    found = {}
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            name, text = line.split(":", 1)
            found[tuple(name.split())] = text.strip()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("counts", "times"):
        parser.add_argument("--" + name, nargs="+", required=True)
    parser.add_argument("--why")
    parser.add_argument("--out")
    args = parser.parse_args()
    times, why = measured(args.times), reasons(args.why) if args.why else {}
    pairs, right, near, rows, without, wrong, missed = 0, 0, 0, [], {}, [], set()
    ladders = [ladder for path in args.counts for ladder in json.load(open(path))["ladders"]]
    for ladder in ladders:
        name, gpu, known = ladder["ladder"], ladder["gpu"]["name"], []
        for variant in ladder["variants"]:
            time = times.get((gpu, name, ladder["problem"], variant["variant"]))
            if variant["seconds"] is None or time is None:
                reason = "it was not measured"
                if variant["twin"]:
                    reason = "the emulator runs other lines than a GPU (a twin)"
                elif variant["why"]:
                    reason = "it does not take this problem"
                elif time is not None:
                    reason = "a warp does more than is kept"
                without.setdefault((name, reason), []).append(variant["variant"])
                continue
            known.append((variant["variant"], time, variant["seconds"]))
            ratio = variant["seconds"] / time
            good = 0.5 <= ratio <= 2
            near += good
            if not good:
                missed.add((name, variant["variant"]))
            rows.append((name, variant["variant"], gpu, time, variant["seconds"], ratio, variant["limit"]))
        for i, a in enumerate(known):
            for b in known[i + 1 :]:
                slow, fast = (a, b) if a[1] > b[1] else (b, a)
                if slow[1] > 1.3 * fast[1]:
                    pairs += 1
                    right += slow[2] > fast[2]
                    if slow[2] <= fast[2]:
                        wrong.append((name, slow[0], fast[0], slow[1] / fast[1]))
    problems = len({row[0] for row in rows})
    lines = [
        f"{problems} ladders: {right} of {pairs} pairs are in the right order ({100 * right / max(pairs, 1):.0f} %).",
        f"{near} of {len(rows)} variants are within 2 times ({100 * near / max(len(rows), 1):.0f} %).",
        "",
        "| ladder | variant | GPU | measured (µs) | predicted (µs) | predicted / measured | limited by |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for name, variant, gpu, time, seconds, ratio, limit in rows:
        mark = "" if 0.5 <= ratio <= 2 else " **"
        lines.append(
            f"| {name} | {variant} | {gpu} | {1e6 * time:.1f} | {1e6 * seconds:.1f} | {ratio:.2f}{mark} | {limit} |"
        )
    lines += ["", "Variants that are off by more than 2 times, and why:", ""]
    used = set()
    for miss in sorted(missed):
        used.add(miss)
        lines.append(point(f"`{' '.join(miss)}`: {why.get(miss, 'NO LINE')}"))
    lines += ["", "Pairs in the wrong order, the slower one first, its measured time over the other's, and why:", ""]
    for name, slow, fast, ratio in wrong:
        at = next((key for key in ((name, slow), (name, fast)) if key in why), None)
        used.add(at)
        lines.append(point(f"`{name}`: `{slow}` before `{fast}` ({ratio:.2f}): {why.get(at, 'NO LINE')}"))
    lines += ["", "Without a prediction:", ""]
    lines += [point(f"`{name}` {', '.join(f'`{one}`' for one in names)}: {reason}") for (name, reason), names in without.items()]
    text = "\n".join(lines) + "\n"
    if args.out:
        open(args.out, "w").write(text)
    print(text)
    idle = sorted(" ".join(key) for key in why if key not in used)
    if "NO LINE" in text or idle:
        sys.exit(f"misses without a line: {text.count('NO LINE')}; lines without a miss: {', '.join(idle) or 'none'}")


if __name__ == "__main__":
    main()
