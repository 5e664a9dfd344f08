"""Lists lines of text and comments that are wider than 110 columns, and fails if there are any: python3 scripts/width.py

Code, code blocks, tables, equations and lines that cannot break (one word, such as a link) may be wider.
"""

import pathlib
import re
import subprocess
import sys

WIDTH = 110
COMMENT = re.compile(r"^\s*//[/!]? ?(.*)$")
LINK = re.compile(r"\]\([^)]*\)")


def can_break(text):
    """Whether the text has a place to break before the limit, besides within a link."""
    return " " in LINK.sub("]", text.strip().lstrip("-*>0123456789. ")).strip()


def wide(name):
    """The numbers of the lines that are too wide."""
    fenced, markdown = False, name.endswith(".md")
    for number, line in enumerate(pathlib.Path(name).read_text(encoding="utf8").splitlines(), 1):
        found = COMMENT.match(line)
        text = line if markdown else found[1] if found else None
        if text is None:
            fenced = False
            continue
        if text.lstrip().startswith("```"):
            fenced = not fenced
            continue
        is_text = not fenced and not text.startswith(("    ", "\t", ">>>", "...")) and not text.lstrip().startswith(("|", "<", "!["))
        if len(line) > WIDTH and is_text and can_break(text):
            yield number


def main():
    listed = subprocess.run(["git", "ls-files", "*.rs", "*.cu", "*.cuh", "*.md"], check=True, capture_output=True, text=True)
    names = [name for name in listed.stdout.splitlines() if pathlib.Path(name).exists()]
    found = [f"{name}:{number}" for name in names for number in wide(name)]
    for place in found:
        print(f"{place}: wider than {WIDTH} columns", file=sys.stderr)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
