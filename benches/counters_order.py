"""Holds predicted times against measured ones: python3 benches/counters_order.py COUNTS.json LADDERS.json [OUT.md]

COUNTS.json is what `rayspin-ladder counters --measured … --json` wrote, LADDERS.json what a run of the same problems on
the GPU wrote. Of the pairs of variants of a ladder whose measured times differ by more than 1.3 times, it counts those
that the prediction has in the same order; of all variants, those within 2 times.
"""

import json
import sys


def measured(path):
    found = {}
    for climb in json.load(open(path))["climbs"]:
        if "CUDA" not in climb["device"]:
            continue
        for step in climb["steps"]:
            timed = isinstance(step["outcome"], dict) and step["outcome"].get("timed")
            if timed:
                found[climb["ladder"], climb["problem"], step["name"]] = timed["timing"]["median"]
    return found


def main(counts, ladders, out=None):
    times = measured(ladders)
    pairs, right, near, variants, rows, wrong = 0, 0, 0, 0, [], []
    for ladder in json.load(open(counts))["ladders"]:
        known = []
        for variant in ladder["variants"]:
            time = times.get((ladder["ladder"], ladder["problem"], variant["variant"]))
            if time is None or variant["seconds"] is None:
                continue
            known.append((variant["variant"], time, variant["seconds"]))
            ratio = variant["seconds"] / time
            variants += 1
            near += 0.5 <= ratio <= 2
            rows.append((ladder["ladder"], variant["variant"], time, variant["seconds"], ratio, variant["limit"]))
        for i, a in enumerate(known):
            for b in known[i + 1:]:
                slow, fast = (a, b) if a[1] > b[1] else (b, a)
                if slow[1] > 1.3 * fast[1]:
                    pairs += 1
                    good = slow[2] > fast[2]
                    right += good
                    if not good:
                        wrong.append(f"{ladder['ladder']}: {slow[0]} before {fast[0]}")
    lines = [
        f"{right} of {pairs} pairs are in the right order ({100 * right / max(pairs, 1):.0f} %).",
        f"{near} of {variants} variants are within 2 times ({100 * near / max(variants, 1):.0f} %).",
        "",
        "| ladder | variant | measured (µs) | predicted (µs) | predicted / measured | limited by |",
        "|---|---|---:|---:|---:|---|",
    ]
    for ladder, variant, time, seconds, ratio, limit in rows:
        mark = "" if 0.5 <= ratio <= 2 else " **"
        lines.append(f"| {ladder} | {variant} | {1e6 * time:.1f} | {1e6 * seconds:.1f} | {ratio:.2f}{mark} | {limit} |")
    lines += ["", "Pairs in the wrong order:", ""] + [f"- {one}" for one in wrong]
    text = "\n".join(lines) + "\n"
    if out:
        open(out, "w").write(text)
    print(text)


if __name__ == "__main__":
    main(*sys.argv[1:4])
