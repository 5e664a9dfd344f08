"""Two builds of the ladders in turns: each variant's time in the new one over the old one.

    python benches/old_new.py "OLD COMMAND" "NEW COMMAND" DEVICE SECONDS LADDER...

Commands are those that run a ladder, as "target/release/rayspin-ladder". A ladder may name a case, as nudft-q:64x64x64. The order of the
two changes from round to round. Each round has 5 rounds of a variant within 0.05 s; the ratio is the median over pairs, with the least and the largest in brackets.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MOST = 12


def times(command, ladder, device):
    """The median time of each variant of a ladder by (ladder, variant)."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "run.json"
        name, _, case = ladder.partition(":")
        case = f"--case {case}" if case else ""
        options = f"{name} {case} --device {device} --rounds 5 --budget 0.05 --no-limits -q --json {file}"
        subprocess.run([*command.split(), *options.split()], stdout=subprocess.DEVNULL, check=True)
        record = json.loads(file.read_text())
    steps = [(run["ladder"], step) for run in record.get("runs", record.get("climbs")) for step in run["steps"]]
    timed = {key: step["outcome"] for key, step in (((name, step["name"]), step) for name, step in steps)}
    return {key: outcome["timed"]["timing"]["median"] for key, outcome in timed.items() if "timed" in outcome}


def main():
    old, new, device, limit, ladders = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5:]
    begin, pairs, cost, rounds = time.monotonic(), {}, {}, 0
    while rounds < MOST and time.monotonic() - begin < limit:
        rounds += 1
        for ladder in ladders:
            start = time.monotonic()
            if rounds > 1 and start - begin + cost[ladder] > limit:
                continue
            order = [(old, 0), (new, 1)] if rounds % 2 else [(new, 1), (old, 0)]
            for command, which in order:
                for key, seconds in times(command, ladder, device).items():
                    pairs.setdefault(key, ([], []))[which].append(seconds)
            cost[ladder] = time.monotonic() - start
    print(f"{rounds} rounds, {time.monotonic() - begin:.0f} s; medians in us, new / old of pairs")
    for (ladder, variant), (before, after) in sorted(pairs.items()):
        if not (before and after):
            print(f"{ladder:18} {variant:22} only in the {'new' if after else 'old'} build")
            continue
        ratios = sorted(b / a for a, b in zip(before, after))
        medians = [1e6 * statistics.median(seconds) for seconds in (before, after)]
        spread = f"({ratios[0]:.3f} {ratios[-1]:.3f})"
        print(f"{ladder:18} {variant:22} {medians[0]:11.1f} {medians[1]:11.1f}  {statistics.median(ratios):.3f} {spread} {len(ratios)}")


if __name__ == "__main__":
    main()
