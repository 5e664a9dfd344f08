"""Writes the overloads of `recon` in _rayspin.pyi from the tables of methods: python crates/python/stubs.py

Every method gets the keywords that its table has, with their kinds, and a docstring with what they mean. A test compares the file with what
this makes.
"""

import pathlib
import re
import textwrap

import rayspin

STUBS = pathlib.Path(__file__).resolve().parent / "python" / "rayspin" / "_rayspin.pyi"
KINDS = {"number": "float", "count": "int", "image": "ArrayLike"}


def keyword(name, row):
    kind = KINDS.get(row["kind"]) or "Literal[" + ", ".join(f'"{one}"' for one in row["range"].split(", ")) + "]"
    return f"    {name}: {kind}{' | None' if row['default'] is None else ''} = ...,\n"


def help_of(name, row):
    default = "" if row["default"] is None else f"; default {row['default']}"
    values = "" if row["range"] == "any" else f" ({row['range']}{default})"
    text = f"{name}: {row['help']}{values}"
    return textwrap.indent(textwrap.fill(text, 110, subsequent_indent="    "), "    ")


def overload(function, common, method, what, table, result):
    """A signature that names the method and has the keywords of its table."""
    doc = textwrap.indent(textwrap.fill(what + ".", 110), "    ").lstrip()
    rows = "\n".join(help_of(name, row) for name, row in table.items())
    common = common.replace("method: str | None = None", f'method: Literal["{method}"]')
    keywords = "".join(keyword(name, row) for name, row in table.items())
    return f'@overload\ndef {function}({common}{keywords}) -> {result}:\n    """{doc}\n\n{rows}\n    """\n\n'


def made(text):
    """The stubs with the overloads as the tables want them: they stand between two comments, before the signature with any keywords."""
    for function, methods in [("recon", rayspin.methods()), ("recon_ct", rayspin.ct.methods())]:
        begin, end = f"# Made by stubs.py: {function}\n", f"# End of {function}\n@overload\n"
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        plain = re.match(rf"def {function}\((.*?)    \*\*parameters: Any,\n\) -> (\w+)", after, re.DOTALL)
        all_of_them = [overload(function, plain[1], name, *row, plain[2]) for name, row in methods.items()]
        text = before + begin + "".join(all_of_them) + end + after
    return text


if __name__ == "__main__":
    STUBS.write_text(made(STUBS.read_text()))
