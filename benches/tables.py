"""The tables of docs/performance.md, made from the raw files in benches/results.

    python benches/tables.py           rewrites the tables of the page
    python benches/tables.py --check   names the tables of the page that differ from the raw files, and fails if any does

The page holds a table between the comments `<!-- table: NAME -->` and `<!-- end -->`. A function of the folder `performance` makes the table of its
name from one raw file; raw.py reads the formats. Two blocks come from the page and from all tables: `contents` lists the headings, `losses` the rows that
Rayspin loses. The words around the tables are written by hand.
"""

import pathlib
import re
import sys

from performance import commands, ct, mri, nufft  # noqa: F401, each registers its tables
from performance.table import TABLES, slower, wrap

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def anchor(heading):
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def contents(page):
    return [f"- [{heading}](#{anchor(heading)})" for heading in re.findall(r"^## (.*)$", page, re.MULTILINE)]


def losses(page, tables):
    """For each table with ratios below 1: its heading, and the losses of each group."""
    lines = []
    for name, table in tables.items():
        groups = []
        for group in dict.fromkeys(group for group, _, value in table.compared if slower(value)):
            rows = [(item, value) for g, item, value in table.compared if g == group]
            lost = [(item, value) for item, value in rows if slower(value)]
            if len(lost) <= 2:
                groups.append(f"{group}: " + "; ".join(f"{item} ({value:.2f}×)" for item, value in lost))
            else:
                values = [value for _, value in lost]
                groups.append(f"{group}: {len(lost)} of {len(rows)} rows ({min(values):.2f}× to {max(values):.2f}×)")
        if groups:
            heading = re.findall(r"^##+ (.*)$", page[: page.index(f"<!-- table: {name} -->")], re.MULTILINE)[-1]
            lines.append(f"- [{heading}](#{anchor(heading)}).")
            lines += ["  " + line for group in groups for line in wrap(f"- {group}.", "  ")]
    return lines


def main():
    page = PAGE.read_text(encoding="utf-8")
    names = [match[2] for match in BLOCK.finditer(page)]
    for name in sorted({*names} ^ {*TABLES, "contents", "losses"}):
        raise SystemExit(f"the table {name} is missing in docs/performance.md or in benches/performance")
    if len(names) != len({*names}):
        raise SystemExit("docs/performance.md has a table twice")
    tables = {name: TABLES[name]() for name in names if name in TABLES}
    blocks = {name: table.lines() for name, table in tables.items()} | {"contents": contents(page), "losses": losses(page, tables)}
    body = {name: "\n" + "\n".join(lines) + "\n\n" for name, lines in blocks.items()}
    wrong = [match[2] for match in BLOCK.finditer(page) if match[3] != body[match[2]]]
    if sys.argv[1:] == ["--check"]:
        for name in wrong:
            print(f"docs/performance.md: the table {name} differs from its raw file; python3 benches/tables.py rewrites it", file=sys.stderr)
        sys.exit(bool(wrong))
    if sys.argv[1:]:
        raise SystemExit(__doc__)
    PAGE.write_text(BLOCK.sub(lambda match: match[1] + body[match[2]] + match[4], page), encoding="utf-8")
    print(f"{len(wrong)} of {len(names)} blocks of docs/performance.md written anew")


if __name__ == "__main__":
    main()
