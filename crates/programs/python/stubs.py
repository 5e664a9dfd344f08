"""Makes the stubs of the compiled module, _rayspin.pyi, from the module that is installed: python crates/programs/python/stubs.py

Names, parameters, defaults and help are the module's own. Types stand in the help that is written in Rust, in backticks at the start of a
line: `(x: Array, *, device: str) -> Penalty` for a function, one line for each overload, and `-> int` for a property. The help of a class
has those of its constructor, and those of operators under their names: `__neg__() -> LinearOperator`. Classes of `rayspin.ct` are `ct.Scan`
and so on. `recon`, `recon_ct` and `simulate` take options from tables: every method gets an overload with the keywords of its table, their
kinds and what they mean, so that a type checker finds keywords and methods that there are not.

A test compares the file with what this makes, and mypy's stubtest compares it with the module.
"""

import inspect
import json
import pathlib
import re
import textwrap
import types

import rayspin
from rayspin import _rayspin

STUBS = pathlib.Path(__file__).resolve().parent / "python" / "rayspin" / "_rayspin.pyi"
HEADER = """\
# Made by stubs.py of the compiled module, whose help states the types.

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._types import Array, Callback, Corrections, Heard, Map, MaybeNone, Number

"""
WIDTH = 110
TYPES = re.compile(r"^`((?:\w*\([^`]*\)\s)?->\s[^`]+)`\n?", re.MULTILINE)
# Special methods whose types are the same for every class. Python writes the help of special methods itself.
SPECIAL = {"__eq__": "(other: object, /) -> bool", "__len__": "() -> int"}
METHODS = {"recon": (rayspin.methods, "mri"), "recon_ct": (rayspin.ct.methods, "ct")}
SIMULATIONS = {"simulate_mri": "mri", "simulate_ct": "ct"}

KINDS = {"number": "float", "count": "int", "image": "ArrayLike"}
KINDS_OF_OPTIONS = {
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


def one_of(names):
    return "Literal[" + ", ".join(f'"{name}"' for name in names) + "]"


def kind_of(function, name, row):
    """The kind of a method's parameter. `recon` may search for the weight of the penalty."""
    kind = KINDS.get(row["kind"]) or one_of(row["range"].split(", "))
    auto = ' | Literal["auto"]' if (function, name) == ("recon", "lambda_") else ""
    return f"{kind}{' | None' if row['default'] is None else ''}{auto}"


def kind_of_option(row):
    match row["kind"]:
        case "name":
            return f"{one_of(row['names'])} | None"
        case "number or name":
            return f"float | {one_of(row['names'])} | None"
        case kind:
            return KINDS_OF_OPTIONS[kind]


def kind_of_simulation(row):
    if row["names"]:
        return f"{one_of(row['names'])} | None"
    return "bool" if row["default"] is False else "Any"


def help_of(name, row):
    default = "" if row["default"] is None else f"; default {row['default']}"
    values = "" if row["range"] == "any" else f" ({row['range']}{default})"
    return textwrap.fill(f"{name}: {row['help']}{values}", WIDTH, subsequent_indent="    ")


def stated(value):
    """The help without types, and the types by name: of special methods theirs, else none."""
    text, found = inspect.cleandoc(value.__doc__ or ""), {}
    for one in TYPES.findall(text):
        one = re.sub(r"\bct\.(?=[A-Z])", "Ct", " ".join(one.split()))
        name = re.match(r"\w*", one)[0]
        found.setdefault(name, []).append(one.removeprefix(name))
    return TYPES.sub("", text).rstrip(), found


def shown(default):
    return "..." if default is ... else json.dumps(default) if isinstance(default, str) else repr(default)


def taken(name, signature, own):
    """The parameters of a signature with types, as a list of texts, and the result's type. Names and defaults are those of the function
    `own`, where Python knows them."""
    scope = {}
    try:
        exec(f"from __future__ import annotations\ndef typed{signature}: ...", scope)
    except SyntaxError as error:
        raise SystemExit(f"{name}: expected types such as `(x: Array) -> int`, found `{signature}`") from error
    typed = inspect.signature(scope["typed"])
    said = typed.parameters.values()
    if own is not None and [(one.name, one.kind) for one in said] != [(one.name, one.kind) for one in own]:
        known = inspect.Signature(own)
        raise SystemExit(f"{name}: expected types of the parameters {known}, found {signature}")
    texts, last = [], None
    for one, real in zip(said, own or said, strict=True):
        if one.annotation is one.empty or (own is not None and one.default is not one.empty):
            raise SystemExit(f"{name}: expected a type without a default for {one.name}, found {signature}")
        if one.kind is one.KEYWORD_ONLY and last is not one.KEYWORD_ONLY:
            texts.append("*")
        if last is one.POSITIONAL_ONLY and one.kind is not last:
            texts.append("/")
        stars = "**" if one.kind is one.VAR_KEYWORD else ""
        default = "" if real.default is one.empty else f" = {shown(real.default)}"
        texts.append(f"{stars}{one.name}: {one.annotation}{default}".replace("'", '"'))
        last = one.kind
    if last is inspect.Parameter.POSITIONAL_ONLY:
        texts.append("/")
    return texts, typed.return_annotation.replace("'", '"')


def documented(head, text, indent):
    """A line that ends with a colon, and the help after it."""
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if not text:
        return f"{indent}{head} ...\n"
    end = "\n" if "\n" in text or len(text) > WIDTH - 10 else ""
    return f"{indent}{head}\n" + textwrap.indent(f'"""{text}{end}"""\n', indent + "    ")


def function(name, parameters, result, text, indent="", decorators=()):
    head = f"def {name}({', '.join(parameters)}) -> {result}:"
    if len(indent + head) > WIDTH:
        head = f"def {name}(\n" + "".join(f"{indent}    {one},\n" for one in parameters) + f"{indent}) -> {result}:"
    return "".join(f"{indent}@{one}\n" for one in decorators) + documented(head, text, indent)


def functions(name, signatures, own, text, indent="", first=(), decorators=()):
    """A function, or its overloads, the first of which has the help."""
    if not signatures:
        raise SystemExit(f"{name}: expected types in its help, such as `(x: Array) -> int`, found none")
    over = ["overload"] if len(signatures) > 1 else []
    made = []
    for signature in signatures:
        parameters, result = taken(name, signature, own)
        made.append(function(name.rpartition(".")[2], [*first, *parameters], result, text, indent, [*over, *decorators]))
        text = ""
    return "".join(made)


def with_methods(name, text, signature, own):
    """A function that reconstructs: an overload for each method, and one without a method, which has the keywords of all."""
    methods, kind = METHODS[name]
    options = _rayspin.recon_options(kind).items()
    listed = [f"{option}: {kind_of_option(row)} = {row['default']}" for option, row in options]
    [scan, _, *rest, _], result = taken(name, signature, own)
    made, kinds = [], {}
    for method, (what, table) in methods().items():
        rows = "\n".join(help_of(*row) for row in table.items())
        keywords = [f"{one}: {kind_of(name, one, row)} = ..." for one, row in table.items()]
        for one, row in table.items():
            kinds.setdefault(one, set()).add(kind_of(name, one, row))
        parameters = [scan, f'method: Literal["{method}"]', *rest, *listed, *keywords]
        told = textwrap.fill(f"{what}.", WIDTH)
        made.append(function(name, parameters, result, f"{told}\n\n{rows}".rstrip(), decorators=["overload"]))
    keywords = [f"{one}: {' | '.join(sorted(all_of_it))} = ..." for one, all_of_it in kinds.items()]
    parameters = [scan, "method: None = None", *rest, *listed, *keywords]
    return "".join([*made, function(name, parameters, result, text, decorators=["overload"])])


def of_function(name, value):
    text, found = stated(value)
    own = list(inspect.signature(value).parameters.values())
    signatures = found.pop("", [])
    if found or (name in METHODS or name in SIMULATIONS) and len(signatures) != 1:
        raise SystemExit(f"{name}: expected the types of one function, found {[*found, *signatures]}")
    if name in METHODS:
        return with_methods(name, text, signatures[0], own)
    if name in SIMULATIONS:
        rows = rayspin.simulate.options(SIMULATIONS[name]).items()
        (*before, _), result = taken(name, signatures[0], own)
        keywords = [f"{option}: {kind_of_simulation(row)} = ..." for option, row in rows]
        return function(name, [*before, *keywords], result, text)
    return functions(name, signatures, own, text)


def of_class(name, value):
    indent, (text, found) = "    ", stated(value)
    made = []
    if "__new__" in vars(value):
        own = list(inspect.signature(value).parameters.values())
        made.append(functions(f"{name}.__new__", found.pop("", []), own, "", indent, ["cls"]))
    for inner, member in sorted(vars(value).items()):
        where, inherited = f"{name}.{inner}", hasattr(object, inner)
        if isinstance(member, types.WrapperDescriptorType):
            if inner in found or inner in SPECIAL or not inherited:
                signatures = found.pop(inner, [SPECIAL[inner]] if inner in SPECIAL else [])
                made.append(functions(where, signatures, None, "", indent, ["self"]))
        elif inherited:
            continue
        elif member is None:
            made.append(f"{indent}{inner}: None\n")
        elif inspect.isdatadescriptor(member):
            told, of_it = stated(member)
            if of_it.keys() != {""} or len(of_it[""]) != 1 or not of_it[""][0].startswith("-> "):
                raise SystemExit(f"{where}: expected the type of a property in its help, such as `-> int`, found {of_it}")
            result = of_it[""][0].removeprefix("-> ")
            made.append(function(inner, ["self"], result, told, indent, ["property"]))
        else:
            bound = getattr(value, inner)
            told, of_it = stated(bound)
            parameters = list(inspect.signature(bound).parameters.values())
            kind = type(member).__name__
            first, decorators = {
                "staticmethod": ([], ["staticmethod"]),
                "classmethod_descriptor": (["cls"], ["classmethod"]),
                "method_descriptor": (["self"], []),
            }[kind]
            parameters = parameters[1:] if kind == "method_descriptor" else parameters
            made.append(functions(where, of_it.get("", []), parameters, told, indent, first, decorators))
    if found:
        raise SystemExit(f"{name}: expected types of its own methods, found those of {', '.join(found)}")
    return f"@final\n{documented(f'class {name}:', text, '')}" + "".join(made)


def made():
    """The stubs of the module."""
    names = sorted(_rayspin.__all__)
    listed = "".join(f'    "{name}",\n' for name in names)
    values, classes, rest = [], [], []
    for name in names:
        value = getattr(_rayspin, name)
        if inspect.isclass(value):
            classes.append(of_class(name, value))
        elif callable(value):
            rest.append(of_function(name, value))
        else:
            values.append(f"{name}: {type(value).__name__}\n")
    return f"{HEADER}__all__ = [\n{listed}]\n\n" + "".join(values) + "\n" + "\n".join([*classes, *rest])


if __name__ == "__main__":
    STUBS.write_text(made())
