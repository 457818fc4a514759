"""Reading the user's program: where a name is bound, where its value flows, and where it is cut.

This is best effort, by names alone: a value flows into whatever is computed from an expression that
mentions it. What ran and what did not is known up to the line that asks.
"""

from __future__ import annotations

import ast
import linecache
from types import FrameType
from typing import Any, Final

from rushlight.reasons.answer import ENDS, Link
from rushlight.reasons.syntax import (
    TOP,
    Cut,
    Key,
    Scope,
    Statement,
    binds,
    bound_by,
    cuts_in,
    keys_of,
    mentions,
    shown,
    source_file,
    switches_off,
)

FILLING: Final = (
    "detach_",
    "append",
    "extend",
    "copy_",
    "add_",
    "fill_",
    "mul_",
)  # what is put in stays


class Program:
    """The file that asks, and that of the class of `module`, as statements."""

    def __init__(self, frame: FrameType | None, module: Any = None) -> None:
        self.statements: list[Statement] = []
        self.calls: list[tuple[int, ast.Call, Scope]] = []
        self.functions: dict[str, list[str]] = {}  # name -> parameters
        self.scopes: dict[str, Scope] = {"": TOP}
        self.now = 0
        self.function = ""
        self.file = ""
        if frame is not None:
            self.file, self.now = frame.f_code.co_filename, frame.f_lineno
            self.function = "" if frame.f_code.co_name == "<module>" else frame.f_code.co_name
            self.read(self.file)
        other = None if module is None else source_file(type(module))
        if other and other != self.file:
            self.read(other)

    # --- reading --------------------------------------------------------------------------------
    def read(self, file: str) -> None:
        text = "".join(linecache.getlines(file))
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            return
        self.visit(tree.body, TOP, "", file)
        self.statements.sort(key=lambda s: (s.file != self.file, s.line))

    def visit(self, body: list[ast.stmt], scope: Scope, off: str, file: str) -> None:
        for stmt in body:
            if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
                args = stmt.args
                self.functions[stmt.name] = [
                    a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)
                ]
                inside = next(filter(None, map(switches_off, stmt.decorator_list)), off)
                own = {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and binds(n)}
                own.update(self.functions[stmt.name])
                inner = Scope(stmt.name, frozenset(own) | self.scope_of(stmt.name).own)
                self.scopes[stmt.name] = inner
                self.visit(stmt.body, inner, inside, file)
                continue
            if isinstance(stmt, ast.ClassDef):
                self.visit(stmt.body, scope, off, file)
                continue
            inside = off
            if isinstance(stmt, (ast.With, ast.AsyncWith)):
                blocks = [switches_off(item.context_expr) for item in stmt.items]
                inside = next(filter(None, blocks), off)
            self.add(stmt, scope, off, file)
            for name in ("body", "orelse", "finalbody"):
                self.visit(getattr(stmt, name, []), scope, inside, file)
            for handler in getattr(stmt, "handlers", []):
                self.visit(handler.body, scope, inside, file)

    def add(self, stmt: ast.stmt, scope: Scope, off: str, file: str) -> None:
        values: list[ast.expr] = []
        targets: list[ast.expr] = []
        if isinstance(stmt, ast.Assign):
            values, targets = [stmt.value], list(stmt.targets)
        elif isinstance(stmt, ast.AugAssign):
            values, targets = [stmt.value, stmt.target], [stmt.target]
        elif isinstance(stmt, ast.AnnAssign) and stmt.value is not None:
            values, targets = [stmt.value], [stmt.target]
        elif isinstance(stmt, (ast.For, ast.AsyncFor)):
            values, targets = [stmt.iter], [stmt.target]
        elif isinstance(stmt, (ast.Expr, ast.Return)) and stmt.value is not None:
            values = [stmt.value]
            call = stmt.value
            on = call.func if isinstance(call, ast.Call) else None
            if isinstance(on, ast.Attribute) and on.attr in FILLING:
                targets = [on.value]
        elif isinstance(stmt, (ast.With, ast.AsyncWith)):
            values = [item.context_expr for item in stmt.items]
        elif isinstance(stmt, (ast.If, ast.While)):
            values = [stmt.test]
        for value in values:
            for each in ast.walk(value):
                if isinstance(each, ast.Call):
                    self.calls.append((each.lineno, each, scope))
        keys = tuple(key for target in targets for key in keys_of(target, scope))
        bound = tuple(key for target in targets for key in bound_by(target, scope))
        returns = isinstance(stmt, ast.Return)
        if values:
            self.statements.append(
                Statement(stmt.lineno, scope, tuple(values), keys, bound, off, returns, file)
            )

    def scope_of(self, function: str) -> Scope:
        return self.scopes.get(function, Scope(function, frozenset()))

    @property
    def here(self) -> Scope:
        """The scope that asks."""
        return self.scope_of(self.function)

    def ran(self, s: Statement) -> bool:
        """Whether a statement may have run when the question is asked."""
        return s.file != self.file or s.scope.function != self.function or s.line < self.now

    # --- names ----------------------------------------------------------------------------------
    def keys(self, name: str) -> set[Key]:
        """How a tensor of this name is mentioned in the program."""
        first, *rest = name.split("[")[0].split(".")
        found = {self.here.key(first)}
        if rest and not rest[0].isdigit():
            found.add((".", rest[0]))
        return found

    def binding(self, name: str) -> str:
        """The last line before now that binds a name: 'train.py:3     x = torch.ones(2)'."""
        s = self.bound(name)
        return "" if s is None else shown(s.file, s.line)

    def bound(self, name: str) -> Statement | None:
        mine = (".", name[1:]) if name.startswith(".") else self.here.key(name)
        found = [s for s in self.statements if mine in s.bound and self.ran(s)]
        return found[-1] if found else None

    def backward_names(self) -> list[str]:
        """What `backward()` is called on, last call first."""
        found = []
        for line, call, scope in self.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
                on = call.func.value
                if isinstance(on, ast.Name) and (
                    scope.function != self.function or line <= self.now
                ):
                    found.append((line, on.id))
        return [name for _, name in sorted(found, reverse=True)]

    def call_of(self, name: str, after: int = 0) -> str:
        """The last line before now that calls a method of this name; "" if none does."""
        found = [
            line
            for line, call, scope in self.calls
            if isinstance(call.func, ast.Attribute) and call.func.attr == name
            and line >= after and (scope.function != self.function or line <= self.now)
        ]  # fmt: skip
        return shown(self.file, max(found)) if found else ""

    def asked_late(self, name: str) -> int:
        """The line that asks for a tensor's gradient after it was made; 0 if none does."""
        mine, bound = self.keys(name), self.bound(name)
        first = bound.line if bound is not None else 0
        for line, call, scope in reversed(self.calls):
            on = call.func
            if not isinstance(on, ast.Attribute) or on.attr != "requires_grad_":
                continue
            if first < line <= self.now and mine & set(keys_of(on.value, scope)):
                return line
        for s in self.statements:
            if (".", "requires_grad") in s.targets and mine & set(s.targets) and self.ran(s):
                return s.line
        return 0

    def line(self, number: int) -> str:
        """A line of the file that asks."""
        return shown(self.file, number)

    def mentioned(self, attribute: str) -> bool:
        """Whether an attribute of `self` is read, or is unknown to the program."""
        if self.bound("." + attribute) is None:
            return True
        return any(
            isinstance(each, ast.Attribute) and each.attr == attribute
            and isinstance(each.value, ast.Name) and each.value.id == "self"
            for s in self.statements for value in s.values for each in ast.walk(value)
        )  # fmt: skip

    def first_use(self, name: str) -> tuple[int, str] | None:
        """The first line that computes with a name after it was bound."""
        bound = self.bound(name)
        after = bound.line if bound is not None else 0
        _, statements = self.flow(self.keys(name), after)
        for s in statements:
            if s.targets and not {(".", "requires_grad")} & set(s.targets):
                return s.line, shown(s.file, s.line)
        return None

    def cut_before(self, name: str) -> tuple[str, list[Any], bool] | None:
        """How the line that binds a name loses the history; None if it does not seem to."""
        s, seen = self.bound(name), set()
        chain: list[Any] = []
        while s is not None and s.line not in seen:
            seen.add(s.line)
            everything = {s.scope.key(n.id) for v in s.values for n in ast.walk(v)
                          if isinstance(n, ast.Name)}  # fmt: skip
            kinds = [k for v in s.values for k in cuts_in(v, everything, s.scope)]
            kinds = [s.off] if s.off else kinds
            if kinds:
                chain.insert(0, Link(shown(s.file, s.line), ENDS))
                return kinds[0], chain, False
            chain.insert(0, Link(shown(s.file, s.line)))
            earlier = [b for b in self.statements if set(b.targets) & everything
                       and b.line < s.line and b.scope == s.scope]  # fmt: skip
            s = earlier[-1] if earlier else None
        return None

    # --- flow -----------------------------------------------------------------------------------
    def flow(self, start: set[Key], after: int = 0) -> tuple[set[Key], list[Statement]]:
        """Where the value of these names goes: all names it reaches, and the statements that take
        it there, in the order of the program."""
        reached = set(start)
        found: dict[int, Statement] = {}
        known = [s for s in self.statements if self.ran(s)]
        for _ in range(4):
            count = len(reached)
            for at, s in enumerate(known):
                here = s.file == self.file and s.scope.function == self.function
                if here and s.line <= after:
                    continue
                if any(mentions(value, reached, s.scope) for value in s.values):
                    found[at] = s
                    reached.update(s.targets)
                    self.enter_calls(s, reached)
            if len(reached) == count:
                break
        return reached, [found[at] for at in sorted(found)]

    def enter_calls(self, s: Statement, reached: set[Key]) -> None:
        """Let what is passed to functions of the file be known inside them."""
        for value in s.values:
            for call in ast.walk(value):
                if not isinstance(call, ast.Call):
                    continue
                name = getattr(call.func, "id", getattr(call.func, "attr", ""))
                own = self.functions.get(name)
                method = own is None or isinstance(call.func, ast.Attribute)
                if own is None and isinstance(call.func, ast.Name):
                    name, own = "forward", self.functions.get("forward")  # a module, perhaps
                if own is None:
                    continue
                names = own[1:] if method and own[:1] == ["self"] else own
                for parameter, given in zip(names, call.args):
                    if mentions(given, reached, s.scope):
                        reached.add((name, parameter))

    def cuts(self, name: str, goal: str) -> list[Cut]:
        """Where the value of `name` leaves the graph on its way to `goal` (if that is known)."""
        start = self.keys(name)
        bound = self.bound(name)
        after = bound.line - 1 if bound is not None and bound.scope.function == self.function else 0
        if bound is not None and not any(mentions(v, start, bound.scope) for v in bound.values):
            after = bound.line
        reached, statements = self.flow(start, after)
        found: list[Cut] = []
        for s in statements:
            kinds = [kind for value in s.values for kind in cuts_in(value, reached, s.scope)]
            if s.off:
                kinds.insert(0, s.off)
            for kind in kinds[:1]:
                found.append(Cut(kind, s.line, shown(s.file, s.line), s.targets, s.returns))
        return [cut for cut in found if self.matters(cut, goal)]

    def matters(self, cut: Cut, goal: str) -> bool:
        if cut.returns:
            return True
        if not cut.targets:
            return False
        if not goal:
            return True
        reached, statements = self.flow(set(cut.targets), cut.line - 1)
        return bool(self.keys(goal) & reached) or any(s.returns for s in statements)
