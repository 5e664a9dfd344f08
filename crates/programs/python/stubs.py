"""Writes the overloads of `recon` and the options of `simulate` in _rayspin.pyi from their tables: python crates/programs/python/stubs.py

Every method gets the keywords that its table has, with their kinds, and a docstring with what they mean; without a method, those of all
methods. A type checker finds keywords and methods that there are not. A test compares the file with what this makes.
"""

import pathlib
import re
import textwrap

import rayspin

STUBS = pathlib.Path(__file__).resolve().parent / "python" / "rayspin" / "_rayspin.pyi"
KINDS = {"number": "float", "count": "int", "image": "ArrayLike"}


def one_of(names):
    return "Literal[" + ", ".join(f'"{name}"' for name in names) + "]"


def kind_of(row):
    kind = KINDS.get(row["kind"]) or one_of(row["range"].split(", "))
    return f"{kind}{' | None' if row['default'] is None else ''}"


def searched(function, name, kind):
    """The kind of a keyword of this function, which may search for the value."""
    return f'{kind} | Literal["auto"]' if (function, name) == ("recon", "lambda_") else kind


KINDS_OF_ROWS = {
    "flag": "bool",
    "number": "float | None",
    "count": "int | None",
    "count or flag": "int | bool | None",
    "counts": "Sequence[int] | None",
    "numbers": "float | Sequence[float] | None",
    "one count or several": "int | Sequence[int] | None",
    "text": "str | None",
    "path": "str | PathLike[str] | None",
    "array or path": "Array | None",
    "number, array or path": "Array | None",
}


def kind_of_row(row):
    match row["kind"]:
        case "name":
            return f"{one_of(row['names'])} | None"
        case "number or name":
            return f"float | {one_of(row['names'])} | None"
        case kind:
            return KINDS_OF_ROWS[kind]


def keywords_of(rows):
    """The keywords of the table of options."""
    return "".join(f"    {name}: {kind_of_row(row)} = {row['default']},\n" for name, row in rows.items())


def keyword(name, kind):
    return f"    {name}: {kind} = ...,\n"


def help_of(name, row):
    default = "" if row["default"] is None else f"; default {row['default']}"
    values = "" if row["range"] == "any" else f" ({row['range']}{default})"
    text = f"{name}: {row['help']}{values}"
    return textwrap.indent(textwrap.fill(text, 110, subsequent_indent="    "), "    ")


def overload(function, common, options, method, what, table, result):
    """A signature that names the method and has the keywords of its table."""
    doc = textwrap.indent(textwrap.fill(what + ".", 110), "    ").lstrip()
    rows = "\n".join(help_of(name, row) for name, row in table.items())
    common = common.replace("method: None = None", f'method: Literal["{method}"]')
    keywords = "".join(keyword(name, searched(function, name, kind_of(row))) for name, row in table.items())
    return f'@overload\ndef {function}({common}{options}{keywords}) -> {result}:\n    """{doc}\n\n{rows}\n    """\n\n'


def kind_of_option(row):
    if row["names"]:
        return f"{one_of(row['names'])} | None"
    return "bool" if row["default"] is False else "Any"


def made(text):
    """The stubs as the tables want them. Overloads stand between two comments; the signature without a method follows, and its keywords end
    at another comment. Keywords of options stand between two comments."""
    from rayspin._rayspin import recon_options

    for function, methods, kind in [("recon", rayspin.methods(), "mri"), ("recon_ct", rayspin.ct.methods(), "ct")]:
        options = keywords_of(recon_options(kind))
        begin, end = f"# Made by stubs.py: {function}\n", f"# End of {function}\n@overload\n"
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        plain = re.match(
            rf"(def {function}\((.*?)    # Of all methods\n)(.*?)(\) -> (\w+).*)", after, re.DOTALL
        )
        all_of_them = [overload(function, plain[2], options, name, *row, plain[5]) for name, row in methods.items()]
        any_of_them = {}
        for _, table in methods.values():
            for name, row in table.items():
                any_of_them.setdefault(name, set()).add(searched(function, name, kind_of(row)))
        keywords = "".join(keyword(name, " | ".join(sorted(kinds))) for name, kinds in any_of_them.items())
        text = before + begin + "".join(all_of_them) + end + plain[1] + options + keywords + plain[4]
    for kind in ("mri", "ct"):
        begin, end = f"    # Made by stubs.py: options of {kind}\n", f"    # End of options of {kind}\n"
        before, rest = text.split(begin)
        options = rayspin.simulate.options(kind).items()
        rows = "".join(keyword(name, kind_of_option(row)) for name, row in options)
        text = before + begin + rows + end + rest.split(end)[1]
    return text


if __name__ == "__main__":
    STUBS.write_text(made(STUBS.read_text()))
