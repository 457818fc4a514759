"""Read a tutorial's code blocks and what it says they print; run the blocks and keep what they do.

As a program: `transcripts.py FILE SEED...` runs the file's code once a seed, in the torch that
`import torch` finds, and prints a JSON list of runs, each a list of what every block printed.

How a tutorial is read:
- A fenced block is code as far as it parses. A rest that does not parse is what it printed.
- A fence labelled `Out:`, or one that does not parse and stands right behind a code block, is what
  that block printed; so is an indented block right behind one (a notebook's form).
- A bare string at the end of a block that begins with `OUT:` is what it printed.
- A comment `### SomeError: text` says that the block raises that error.
- A comment behind a `print` tells what that line printed if it begins or ends with True, False or
  None, says `OUT:` or `out =`, or holds `<... object at 0x...>`.
- A block that is one call whose positional arguments are no names in use is the listing of a
  signature, to be compared and not to be run.
- A block's last expression is displayed as a notebook does, unless it is None.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import io
import json
import linecache
import re
import sys
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

# Names a page takes as given, with the code that gives them: the opening that its formulas state.
OPENINGS = {"x": "x = torch.ones(2, 2, requires_grad=True)", "y": "y = x + 2"}


@dataclass
class Block:
    """A block of code with what the page says about it."""

    code: str
    printed: str = ""
    raises: str = ""
    remarks: list[tuple[int, str]] = field(default_factory=list)  # (line, what it prints)
    signature: bool = False


def parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def read(path: Path) -> list[Block]:
    """The blocks of a tutorial, in order, with an opening first where the page needs one."""
    blocks: list[Block] = []
    after_code = labelled = False  # is the last thing seen a code block? an `Out:` line?
    lines = path.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("```"):
            end = lines.index("```", at)
            text = "\n".join(lines[at:end])
            at = end + 1
            if labelled or (after_code and not parses(text)):
                blocks[-1].printed = text
                after_code = labelled = False
            else:
                blocks.append(split(text))
                after_code = True
        elif line.startswith("    ") and after_code:
            begin = at - 1
            while at < len(lines) and (not lines[at].strip() or lines[at].startswith("    ")):
                at += 1
            blocks[-1].printed = "\n".join(text[4:] for text in lines[begin:at]).rstrip()
            after_code = False
        elif line.strip() == "Out:":
            labelled = True
        elif line.strip():
            after_code = labelled = False
    return mark_signatures(opening(blocks) + blocks)


def split(text: str) -> Block:
    """One fence: its code, and whatever in it tells what the code prints."""
    lines = text.splitlines()
    end = next(n for n in range(len(lines), -1, -1) if parses("\n".join(lines[:n])))
    rest = "\n".join(lines[end:]).removeprefix("Out:").strip()
    block = Block("\n".join(lines[:end]), rest)
    body = ast.parse(block.code).body
    if body and isinstance(last := body[-1], ast.Expr) and isinstance(last.value, ast.Constant):
        said = str(last.value.value).strip()
        if said.startswith("OUT:"):
            block.printed = said.removeprefix("OUT:").strip().removeprefix(">>> ")
    for token in tokenize.generate_tokens(io.StringIO(block.code).readline):
        if token.type != tokenize.COMMENT:
            continue
        if error := re.match(r"### (\w+Error: .*)", token.string):
            block.raises = error[1]
        elif token.line.lstrip().startswith("print") and (said := remark(token.string)):
            block.remarks.append((token.start[0], said))
    return block


def remark(comment: str) -> str:
    """The output that a comment behind a print statement quotes, or an empty string."""
    comment = comment.lstrip("#").strip()
    for pattern in (
        r"(?i:out)\s*[:=]\s*(.+)",
        r"(<\w+ object at 0x\w+>)",
        r"^(True|False|None)\b",
        r"(True|False|None)$",
    ):
        if found := re.search(pattern, comment):
            return found[1]
    return ""


def opening(blocks: list[Block]) -> list[Block]:
    """A block that gives what the page uses before it defines it: torch, and perhaps more."""
    defined: set[str] = set()
    wanted: set[str] = set()
    for block in blocks:
        for statement in ast.parse(block.code).body:
            wanted |= used(statement) - defined
            defined |= bound(statement)
    lines = ["import torch"]
    if wanted & OPENINGS.keys():
        lines += OPENINGS.values()
    return [Block("\n".join(lines))]


def used(tree: ast.AST) -> set[str]:
    loads = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return {name.id for name in loads}


def bound(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return names


def mark_signatures(blocks: list[Block]) -> list[Block]:
    known = set(dir(builtins))
    for block in blocks:
        tree = ast.parse(block.code)
        match tree.body:
            case [ast.Expr(value=ast.Call(args=[ast.Name(), *_] as names))]:
                block.signature = any(isinstance(n, ast.Name) and n.id not in known for n in names)
        known |= bound(tree)
    return blocks


def display(value: object) -> str:
    """What a notebook shows for a value: IPython's pretty printer, as far as the pages use it."""
    if isinstance(value, type) and type(value).__repr__ is type.__repr__:
        module = value.__module__
        name = value.__qualname__
        return name if module in ("builtins", None) else f"{module}.{name}"
    if isinstance(value, tuple):
        inner = ", ".join(display(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return "[" + ",\n ".join(display(item) for item in value) + "]"
    if type(value).__repr__ is object.__repr__:
        return f"<{display(type(value))} at {id(value):#x}>"
    return repr(value)


def signature_of(code: str) -> tuple[str, list[tuple[str, str | None]]]:
    """The function that a listing names, and its parameters with their defaults as written."""
    (statement,) = ast.parse(code).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(call := statement.value, ast.Call)
    parameters: list[tuple[str, str | None]] = [(ast.unparse(arg), None) for arg in call.args]
    parameters += [(key.arg or "", ast.unparse(key.value)) for key in call.keywords]
    return ast.unparse(call.func), parameters


def run(blocks: list[Block], seed: int) -> list[dict[str, object]]:
    """Run the blocks in one namespace; for each what it printed, by line, and what it raised."""
    space: dict[str, object] = {"__name__": "__main__"}
    results: list[dict[str, object]] = []
    for number, block in enumerate(blocks):
        results.append(run_block(block, f"<block {number}>", space))
        if number == 0:
            space["torch"].manual_seed(seed)  # type: ignore[attr-defined]
    return results


def run_block(block: Block, name: str, space: dict[str, object]) -> dict[str, object]:
    if block.signature:
        function, _ = signature_of(block.code)
        parameters = inspect.signature(eval(function, space)).parameters.values()
        return {
            "signature": [
                [p.name, None if p.default is p.empty else repr(p.default)] for p in parameters
            ]
        }
    # An error's report shows the user's line: let it find the text.
    linecache.cache[name] = (len(block.code), None, block.code.splitlines(True), name)
    out, raised = io.StringIO(), ""
    by_line: dict[int, str] = {}
    try:
        for statement in ast.parse(block.code).body:
            begin = out.tell()
            with contextlib.redirect_stdout(out):
                last = statement.end_lineno == len(block.code.rstrip().splitlines())
                if isinstance(statement, ast.Expr):
                    value = eval(compile(ast.Expression(statement.value), name, "eval"), space)
                    if last and value is not None and not isinstance(statement.value, ast.Constant):
                        print(display(value))
                else:
                    exec(compile(ast.Module([statement], []), name, "exec"), space)
            by_line[statement.end_lineno or 0] = out.getvalue()[begin:]
    except Exception as error:
        if not block.raises:
            raise
        raised = f"{type(error).__name__}: {error}"
    return {"printed": out.getvalue(), "raised": raised, "lines": by_line}


def main() -> None:
    blocks = read(Path(sys.argv[1]))
    print(json.dumps([run(blocks, int(seed)) for seed in sys.argv[2:]]))


if __name__ == "__main__":
    main()
