"""Write the reference of all functions from the op table: docs/api/, at each `make docs`.

    python tools/make_api.py docs/api

A page for each folder of `src/rushlight/ops/`: every public function with its signature and
docstring, and of the op behind it, if it has one of its own, the rule that gives its gradient (the
source of the rule itself, and the formula that it records, so that neither can be out of date), the
name of its node and the dtypes it takes. The pages are not kept in the repository.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from rushlight import ops
from rushlight.core.graph import Op, TensorBase, wrap
from rushlight.core.record import apply
from rushlight.ops.described import describe
from rushlight.ops.registry import functions, methods, namespaces, table
from rushlight.ops.sample_inputs import Draw, samples_of
from rushlight.viz.formula import formula

# What stands in each folder, in the order of the pages.
FOLDERS = {
    "creation": "Making tensors",
    "pointwise": "Element by element",
    "special": "Special functions",
    "reduction": "Sums, means, extremes",
    "statistics": "Statistics, windows, masked functions",
    "view": "Views",
    "shape": "Shapes: joining, repeating, rearranging",
    "indexing": "Indexing",
    "lookup": "Embedding, searching, sorting",
    "matmul": "Products of matrices",
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "random": "Random numbers",
    "nn": "Activations, softmax, dropout",
    "conv": "Convolution",
    "pooling": "Pooling",
    "norms": "Normalisation",
    "losses": "Losses",
    "recurrent": "Recurrent layers",
    "attention": "Attention",
    "vision": "Pictures",
    "sparse": "Sparse tensors",
    "copies": "Copies and other names",
    "compat": "For programs of other days",
}
REST = "Others"
# The methods in which the rules of the families stand, the most telling first.
RULES = ("through", "partials", "adjoint", "left", "vjp")
# What these say holds for whole families of ops: not the rule of one.
GENERAL = {"rushlight.core.families", "rushlight.core.elementwise", "rushlight.core.graph"}
DTYPES = {
    "default": "dtypes meet as usual",
    "float": "integers become the default float dtype",
    "bool": "gives bools",
    "int": "integers and bools",
}


def public_functions() -> dict[str, tuple[str, Callable[..., Any]]]:
    """The name that users write, and the function's name in the table with the function."""
    ops.fill_rest()
    found: dict[str, tuple[str, Callable[..., Any]]] = {}
    for name, fn in functions.items():
        found[f"torch.{name}"] = name, fn
    for space, members in namespaces.items():
        for name, fn in members.items():
            found[f"torch.{space}.{name}"] = name, fn
    for name, fn in methods.items():
        if name not in functions:
            found[f"Tensor.{name}"] = name, fn
    return {
        shown: entry
        for shown, entry in found.items()
        if not entry[0].startswith("_") and not entry[0].endswith("_")
    }


def plain(fn: Any) -> Any:
    """The function itself; of a property what reads it."""
    return fn.fget if isinstance(fn, property) else fn


def folder_of(fn: Callable[..., Any]) -> str:
    # not `__module__`, which becomes `rushlight` when a function is first handed out
    inner = inspect.unwrap(plain(fn))
    home = inner.__globals__["__name__"] if isinstance(inner, FunctionType) else inner.__module__
    parts = home.split(".")
    return parts[2] if parts[:2] == ["rushlight", "ops"] and len(parts) > 3 else ""


def signature(name: str, fn: Callable[..., Any]) -> str:
    if isinstance(fn, property):
        return name
    found = inspect.signature(fn)
    short = f"{name}{found}"
    if len(short) <= 90:
        return short
    parts = [part.strip() for part in str(found).partition(") -> ")[0][1:].split(", ")]
    result = str(found).partition(") -> ")[2]
    inside = textwrap.fill(", ".join(parts), 86, break_long_words=False, break_on_hyphens=False)
    return f"{name}(\n{textwrap.indent(inside, '    ')},\n)" + (f" -> {result}" if result else "")


def prose(text: str, name: str) -> str:
    """A docstring as Markdown: examples fenced, stars outside of code as they are."""
    lines = inspect.cleandoc(text).splitlines()
    if lines and lines[0].startswith(f"{name}("):  # PyTorch's habit: the signature stands above
        lines[0] = lines[0].partition(": ")[2].capitalize()
    out: list[str] = []
    fenced = False
    for line in lines:
        starts = line.lstrip().startswith(">>> ")
        if starts and not fenced:
            out += ["", "```pycon"]
            fenced = True
        elif fenced and not line.strip():
            out += ["```", ""]
            fenced = False
        out.append(line if fenced else escape(line))
    if fenced:
        out.append("```")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def escape(line: str) -> str:
    """A line of prose; an argument's description becomes an item of a list."""
    if re.match(r"^(Args|Returns|Example|Examples|Keyword args|Note|Raises):\s*$", line.strip()):
        return f"\n**{line.strip()}**\n"
    parts = re.split(r"(`[^`]*`)", line)
    plain = [re.sub(r"([*_<>\[\]$])", r"\\\1", p) if i % 2 == 0 else p for i, p in enumerate(parts)]
    text = "".join(plain)
    item = re.match(r"^\s{4}(\S.*?): (.*)$", text)
    if item:
        return f"- {item[1]}: {item[2]}"
    return text.strip()


def rule(cls: type[Op]) -> tuple[str, str] | None:
    """The source of the rule that gives an op's gradient, and where it stands."""
    for name in RULES:
        for home in cls.__mro__:
            method = vars(home).get(name)
            if method is None or home.__module__ in GENERAL:
                continue
            source = source_of(home, name, inspect.unwrap(getattr(method, "__func__", method)))
            if source:
                return source, f"{home.__module__}.{home.__qualname__}.{name}"
    return None


def source_of(home: type, name: str, method: Any) -> str:
    """The text of a method: of a row of a table its lambda, of a compiled class its source."""
    if not isinstance(method, FunctionType):
        return compiled_source(home, name)
    text = textwrap.dedent(inspect.getsource(method)).strip()
    if method.__name__ != "<lambda>":
        return text
    parameters = list(inspect.signature(method).parameters)
    for node in ast.walk(ast.parse(f"f({text}\n)")):
        if isinstance(node, ast.Lambda) and [a.arg for a in node.args.args] == parameters:
            return ast.unparse(node)
    return text


def compiled_source(home: type, name: str) -> str:
    file = Path(str(sys.modules[home.__module__].__file__))
    text = file.with_name(file.name.split(".")[0] + ".py").read_text("utf-8")
    for cls in ast.walk(ast.parse(text)):
        if isinstance(cls, ast.ClassDef) and cls.name == home.__name__:
            for item in cls.body:
                if isinstance(item, ast.FunctionDef) and item.name == name:
                    return textwrap.dedent(ast.get_source_segment(text, item, padded=True) or "")
    return ""


def formula_of(cls: type[Op]) -> str:
    """The rule as a formula, as it is recorded on the first of the op's own samples; "" if it is
    too long for one, or the sample has no gradient (complex numbers alone)."""
    if not cls.differentiable:
        return ""
    op, *raws = next(samples_of(cls, Draw(0)))
    inputs = [wrap(x) if hasattr(x, "dtype") else x for x in raws]
    for x in inputs:
        if isinstance(x, TensorBase) and x._array.dtype.kind == "f":
            x._requires_grad = True
    result = apply(op, *inputs)
    node = (result[0] if isinstance(result, tuple) else result).grad_fn
    text = "" if node is None else formula(node)
    return text if len(text) <= 160 else ""


def facts(cls: type[Op]) -> list[str]:
    """What can be said of an op in a line each."""
    node = cls.node or "".join(word.capitalize() for word in cls.name.split("_")) + "Backward0"
    said = [f"node `{node}`" if cls.differentiable else "not differentiable"]
    dtypes = DTYPES.get(getattr(cls, "promotion", ""))
    if dtypes:
        said.append(dtypes)
    if getattr(cls, "complex_too", False):
        said.append("takes complex numbers")
    return said


def entry(shown: str, name: str, fn: Callable[..., Any]) -> str:
    if not isinstance(fn, property):
        describe(fn)
    lines = [f"## `{shown}`", "", "```python", signature(shown, fn), "```", ""]
    lines += [prose(fn.__doc__ or "", name), ""]
    cls = table.get(name)
    if cls is not None:
        lines += ["*" + "; ".join(facts(cls)) + "*", ""] if facts(cls) else []
        found = rule(cls)
        if found is not None:
            lines += [f"Its rule, `{found[1]}`:", "", "```python", found[0], "```", ""]
            shown_as = formula_of(cls)
            lines += (
                ["On a sample this is:", "", "```text", shown_as, "```", ""] if shown_as else []
            )
    return "\n".join(lines)


def write(folder: Path) -> None:
    """All pages."""
    folder.mkdir(parents=True, exist_ok=True)
    pages: dict[str, list[tuple[str, str, Callable[..., Any]]]] = defaultdict(list)
    for shown, (name, fn) in sorted(
        public_functions().items(), key=lambda item: (item[0][0] == "T", item[0])
    ):
        place = folder_of(fn)
        pages[place if place in FOLDERS else ""].append((shown, name, fn))
    made = {"index.md"}
    for place, title in [*FOLDERS.items(), ("", REST)]:
        if place not in pages:
            continue
        text = f"# {title}\n\n" + "\n".join(entry(*each) for each in pages[place])
        put(folder / f"{place or 'others'}.md", text)
        made.add(f"{place or 'others'}.md")
    put(folder / "index.md", contents({place: len(entries) for place, entries in pages.items()}))
    for stale in folder.glob("*.md"):
        if stale.name not in made:
            stale.unlink()


def contents(counts: dict[str, int]) -> str:
    """The page that lists the others."""
    titles = [(p, title) for p, title in [*FOLDERS.items(), ("", REST)] if p in counts]
    lines = ["# Functions", ""]
    lines += [
        f"{sum(counts.values())} functions, written from the op table: signature, description, and",
        "the rule of the gradient as it stands in the source. Forms in place (`add_`) are those of",
        "the functions without the underscore.",
        "",
        "| subject | functions |",
        "| --- | ---: |",
    ]
    lines += [f"| [{title}]({p or 'others'}.md) | {counts[p]} |" for p, title in titles]
    lines += ["", "```{toctree}", ":hidden:", "", *[p or "others" for p, _ in titles], "```", ""]
    return "\n".join(lines)


def put(path: Path, text: str) -> None:
    """Write a page if it is another one than before: Sphinx reads what changed."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
