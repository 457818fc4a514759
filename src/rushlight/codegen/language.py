"""The C of kernels: what is particular to C stands here, and in `mathematics`.

Note [Stages]
    A kernel over rows is a sequence of loops over the row. A loop ends with the reductions that
    can be finished by then, of which the next loop's values are made. What a later loop needs of
    an earlier one's it computes again, if that is cheap; else it was put aside, in the memory of a
    result that is not yet written or in scratch memory.

Note [Sums in kernels]
    Elements are added in sets of `_SET` by SIMD lanes, each a handful of additions, and the sets
    in double: the error is below that of adding in pairs. What is made of a row's sums is computed
    in double too, and rounded where it meets the elements: the mean of equal numbers is theirs.
"""

from __future__ import annotations

from rushlight.codegen.expressions import (
    COLUMN,
    EACH,
    ONE,
    REDUCTIONS,
    ROW,
    Expr,
    Kernel,
    in_order,
)

# --- words ----------------------------------------------------------------------------------------
# {s} is the suffix of the type, {0}… the operands, T the type.
WORDS = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}",
    "negative": "-{0}", "positive": "{0}", "spread": "{0}", "square": "{0} * {0}",
    "reciprocal": "1 / {0}", "absolute": "r_fabs_{s}({0})", "sqrt": "r_sqrt_{s}({0})",
    "exp": "r_exp_{s}({0})", "expm1": "r_expm1_{s}({0})", "log": "r_log_{s}({0})",
    "log1p": "r_log1p_{s}({0})", "tanh": "r_tanh_{s}({0})", "expit": "r_expit_{s}({0})",
    "log_expit": "r_log_expit_{s}({0})", "erf": "r_erf_{s}({0})",
    "floor": "r_floor_{s}({0})", "ceil": "r_ceil_{s}({0})", "trunc": "r_trunc_{s}({0})",
    "rint": "r_rint_{s}({0})", "sign": "r_sign_{s}({0})",
    "copysign": "r_copysign_{s}({0}, {1})",
    "maximum": "r_maximum_{s}({0}, {1})", "minimum": "r_minimum_{s}({0}, {1})",
    "fmax": "r_fmax_{s}({0}, {1})", "fmin": "r_fmin_{s}({0}, {1})",
    "less": "{0} < {1}", "less_equal": "{0} <= {1}", "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}", "equal": "{0} == {1}", "not_equal": "{0} != {1}",
    "logical_and": "{0} && {1}", "logical_or": "{0} || {1}", "logical_not": "!{0}",
    "power": "pow({0}, {1})", "isnan": "{0} != {0}", "where": "{0} ? {1} : {2}",
}  # fmt: skip
DEAR = frozenset(
    ("exp", "expm1", "log", "log1p", "tanh", "expit", "log_expit", "erf", "divide", "sqrt")
)
_TRUTHS = frozenset(("logical_and", "logical_or", "logical_not"))  # of truths; others of numbers
_SET = 256
_TYPES = {"f": "float", "d": "double"}


def can_write(kernel: Kernel) -> bool:
    """Whether C has a word for all that a kernel does."""
    known = {*WORDS, "input", "param", "const", "count", "sum_rows", *REDUCTIONS}
    values = in_order(kernel.outputs)
    powers = [e for e in values if e.word == "power"]  # of parameters alone: no SIMD of libm's
    return all(e.word in known for e in values) and all(e.role == ONE for e in powers)


# --- one kernel -----------------------------------------------------------------------------------
class _Writer:
    """The function of one kernel in one type."""

    def __init__(self, kernel: Kernel, letter: str) -> None:
        self.kernel = kernel
        self.letter = letter
        self.type = _TYPES[letter]
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[Expr, str] = {}  # of values that are at hand now
        self.order = in_order(kernel.outputs)
        self.number = {e: i for i, e in enumerate(self.order)}

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def open(self, line: str) -> None:
        self.put(line + " {")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.put("}")

    def loop(self, head: str) -> None:
        self.lines.append("#pragma GCC ivdep")
        self.open(head)

    def literal(self, value: object, wide: bool) -> str:
        if isinstance(value, bool):
            return "1" if value else "0"
        assert isinstance(value, float)
        if value != value:
            text = "NAN"
        elif value in (float("inf"), float("-inf")):
            text = "INFINITY" if value > 0 else "-INFINITY"
        else:
            text = str(int(value)) if value == int(value) and abs(value) < 1e6 else value.hex()
            if value == 0 and str(value)[0] == "-":
                text = "-0.0"
        return f"({'double' if wide else self.type}){text}"

    def operand(self, e: Expr, truth: bool, wide: bool) -> str:
        if e.word == "const":
            return self.literal(e.value, wide)
        name = self.names[e]
        if e.truth and not truth:
            return f"({'double' if wide else self.type}){name}"
        if not e.truth and truth:
            return f"({name} != 0)"
        if e.role in (ONE, ROW) and not wide and not e.truth:
            return f"({self.type}){name}"
        return name

    def expression(self, e: Expr, wide: bool) -> str:
        """The C of a value whose operands are at hand; `wide` computes in double."""
        if e.word == "where":
            args = [self.operand(e.args[0], True, wide)]
            args += [self.operand(a, e.truth, wide) for a in e.args[1:]]
        else:
            args = [self.operand(a, e.word in _TRUTHS, wide) for a in e.args]
        return WORDS[e.word].format(*args, s="d" if wide else self.letter)

    def define(self, e: Expr, wide: bool = False) -> None:
        kind = "int" if e.truth else "double" if wide else self.type
        name = f"{e.role[0]}{self.number[e]}"
        self.put(f"const {kind} {name} = {self.expression(e, wide)};")
        self.names[e] = name

    def whole(self) -> None:
        """The parameters, and what is made of them alone."""
        for e in self.order:
            if e.role != ONE or e.word == "const":
                continue
            if e.word == "param":
                self.names[e] = f"p[{e.value}]"
            elif e.word == "count":
                self.names[e] = "(double)n"
            elif e.word == "input":
                self.put(
                    f"const {self.type} o{self.number[e]} = *(const {self.type} *)in[{e.value}];"
                )
                self.names[e] = f"o{self.number[e]}"
            else:
                self.define(e, wide=not any(a.word == "input" for a in in_order((e,))))

    def head(self, name: str) -> None:
        self.depth = 0
        size = "npy_intp rows, npy_intp n" if self.kernel.by_rows else "npy_intp n"
        self.open(f"CLONES static void {name}(char **in, char **out, {size}, const double *p)")

    def output(self, k: int, e: Expr) -> None:
        """Write one element of a result."""
        self.put(f"y{k}[i] = {self.operand(e, e.truth, False)};")

    # --- element by element -----------------------------------------------------------------------
    def flat(self, name: str) -> str:
        self.head(name)
        for e in self.kernel.inputs:
            if e.role == EACH and e in self.number:
                self.put(f"const {self.type} *x{e.value} = (const {self.type} *)in[{e.value}];")
        for k, e in enumerate(self.kernel.outputs):
            kind = "unsigned char" if e.truth else self.type
            self.put(f"{kind} *y{k} = ({kind} *)out[{k}];")
        self.whole()
        self.loop("for (npy_intp i = 0; i < n; i++)")
        for e in self.order:
            if e.role == EACH:
                if e.word == "input":
                    self.put(f"const {self.type} e{self.number[e]} = x{e.value}[i];")
                    self.names[e] = f"e{self.number[e]}"
                else:
                    self.define(e)
        for k, e in enumerate(self.kernel.outputs):
            self.output(k, e)
        self.close()
        self.close()
        return "\n".join(self.lines)

    # --- row by row: see Note [Stages] ------------------------------------------------------------
    def rows(self, name: str) -> str:
        levels: dict[Expr, int] = {}
        for e in self.order:
            level = max([levels[a] for a in e.args], default=0)
            levels[e] = level + e.is_reduction
        last = max(levels[e] for e in self.kernel.outputs)
        wanted: list[list[Expr]] = [[] for _ in range(last + 1)]  # what each loop is for
        for e in self.order:
            if e.is_reduction:
                wanted[levels[e.args[0]]].append(e)
        each_outputs = [e for e in self.kernel.outputs if e.role == EACH]
        down = [e for e in self.kernel.outputs if e.word == "sum_rows"]  # sums over the rows
        # results are written by the last loop: until then their memory is free
        needs = [self.needed(tuple(e.args[0] for e in w)) for w in wanted]
        if each_outputs:
            needs[last] |= self.needed(tuple(each_outputs))
        for e in down:
            needs[levels[e]] |= self.needed(e.args)
        aside: dict[Expr, str] = {}
        free = [
            f"y{k}" for k, e in enumerate(self.kernel.outputs) if e.role == EACH and not e.truth
        ]
        for e in self.order:
            if e.role == EACH and e.word in DEAR and sum(e in need for need in needs) > 1:
                aside[e] = free.pop(0) if free else f"z{len(aside)}"
        scratch = [slot for slot in aside.values() if slot[0] == "z"]
        self.head(name)
        if scratch or down:
            size = f"sizeof({self.type})"
            self.put(
                "double *memory = (double *)scratch("
                f"n * ({len(down)} * 8 + {len(scratch)} * {size}));"
            )
            for at, e in enumerate(down):
                self.put(f"double *a{self.number[e]} = memory + {at} * n;")
            for at, slot in enumerate(scratch):
                self.put(
                    f"{self.type} *{slot} = ({self.type} *)(memory + {len(down)} * n) + {at} * n;"
                )
            if down:
                self.put(f"memset(memory, 0, n * {len(down)} * sizeof(double));")
        self.whole()
        self.open("for (npy_intp r = 0; r < rows; r++)")
        for e in self.kernel.inputs:
            base = f"(const {self.type} *)in[{e.value}]"
            if e.role == EACH:
                self.put(f"const {self.type} *x{e.value} = {base} + r * n;")
            elif e.role == COLUMN:
                self.put(f"const {self.type} *x{e.value} = {base};")
            elif e.role == ROW and e in self.number:
                self.put(f"const {self.type} r{self.number[e]} = ({base})[r];")
                self.names[e] = f"r{self.number[e]}"
        for k, e in enumerate(self.kernel.outputs):
            kind = "unsigned char" if e.truth else self.type
            if e.role == EACH:
                self.put(f"{kind} *y{k} = ({kind} *)out[{k}] + r * n;")
        ready: set[Expr] = set()  # put aside by an earlier loop
        for level in range(last + 1):
            for e in self.order:  # what is made of reductions, before the loop
                if (
                    e.role == ROW
                    and levels[e] == level
                    and not e.is_reduction
                    and e.word != "input"
                ):
                    self.define(e, wide=True)
            final = each_outputs if level == last else []
            here = [e for e in down if levels[e] == level]
            if wanted[level] or final or here:
                self.stage(wanted[level], final, here, needs[level], aside, ready)
        for k, e in enumerate(self.kernel.outputs):
            if e.role == ROW:
                self.put(f"(({self.type} *)out[{k}])[r] = {self.operand(e, e.truth, False)};")
        self.close()
        for k, e in enumerate(self.kernel.outputs):
            if e in down:
                self.open("for (npy_intp i = 0; i < n; i++)")
                self.put(f"(({self.type} *)out[{k}])[i] = ({self.type})a{self.number[e]}[i];")
                self.close()
        self.close()
        return "\n".join(self.lines)

    def needed(self, what: tuple[Expr, ...]) -> set[Expr]:
        """The values of elements that a loop computes, or reads, for `what`: what is behind a
        reduction is not among them."""
        found: set[Expr] = set()
        stack = [e for e in what if e.role in (EACH, COLUMN)]
        while stack:
            e = stack.pop()
            if e not in found:
                found.add(e)
                stack.extend(a for a in e.args if a.role in (EACH, COLUMN))
        return found

    def stage(
        self, reduced: list[Expr], final: list[Expr], down: list[Expr], need: set[Expr],
        aside: dict[Expr, str], ready: set[Expr],
    ) -> None:  # fmt: skip
        """One loop over a row: for some reductions, for the results, for sums over the rows."""
        starts = {"reduce_sum": "0", "reduce_max": "-INFINITY", "reduce_min": "INFINITY"}
        T = self.type
        # what is put aside is not computed again, nor what only it is made of
        read: set[Expr] = {e for e in need if e in ready}
        used: set[Expr] = set()
        stack = [e.args[0] for e in (*reduced, *down)] + final
        while stack:
            e = stack.pop()
            if e in used or e not in need:
                continue
            used.add(e)
            if e not in read:
                stack.extend(e.args)
        sums = [e for e in reduced if e.word == "reduce_sum"]
        for e in reduced:
            m = self.number[e]
            if e.word == "reduce_sum":
                self.put(f"double s{m} = 0;")
            else:
                self.put(f"{T} m{m} = {starts[e.word]}; int nan{m} = 0;")
        clauses = []
        if sums:
            self.open(f"for (npy_intp from = 0; from < n; from += {_SET})")
            self.put(f"const npy_intp to = from + {_SET} < n ? from + {_SET} : n;")
            for e in sums:
                self.put(f"{T} q{self.number[e]} = 0;")
            clauses.append("reduction(+:" + ", ".join(f"q{self.number[e]}" for e in sums) + ")")
        for word, sign in (("reduce_max", "max"), ("reduce_min", "min")):
            found = [e for e in reduced if e.word == word]
            if found:
                clauses.append(
                    f"reduction({sign}:" + ", ".join(f"m{self.number[e]}" for e in found) + ")"
                )
        limits = [e for e in reduced if e.word != "reduce_sum"]
        if limits:
            clauses.append("reduction(|:" + ", ".join(f"nan{self.number[e]}" for e in limits) + ")")
        self.lines.append(
            f"#pragma omp simd {' '.join(clauses)}" if clauses else "#pragma GCC ivdep"
        )
        bounds = "npy_intp i = from; i < to" if sums else "npy_intp i = 0; i < n"
        self.open(f"for ({bounds}; i++)")
        outer = dict(self.names)
        for e in self.order:
            if e not in used:
                continue
            if e.word == "input":
                self.put(f"const {T} e{self.number[e]} = x{e.value}[i];")
                self.names[e] = f"e{self.number[e]}"
            elif e in read:
                self.put(f"const {T} e{self.number[e]} = {aside[e]}[i];")
                self.names[e] = f"e{self.number[e]}"
            else:
                self.define(e)
                if e in aside:
                    self.put(f"{aside[e]}[i] = {self.names[e]};")
        for e in reduced:
            m, x = self.number[e], self.operand(e.args[0], False, False)
            if e.word == "reduce_sum":
                self.put(f"q{m} += {x};")
            else:
                sign = ">" if e.word == "reduce_max" else "<"
                self.put(f"m{m} = {x} {sign} m{m} ? {x} : m{m}; nan{m} |= {x} != {x};")
        for e in down:
            self.put(f"a{self.number[e]}[i] += {self.operand(e.args[0], False, False)};")
        for k, e in enumerate(self.kernel.outputs):
            if e in final:
                self.output(k, e)
        self.close()
        if sums:
            for e in sums:
                self.put(f"s{self.number[e]} += q{self.number[e]};")
            self.close()
        self.names = outer
        ready.update(e for e in used if e in aside)
        for e in reduced:
            m = self.number[e]
            value = f"s{m}" if e.word == "reduce_sum" else f"nan{m} ? NAN : m{m}"
            self.put(f"const double r{m} = {value};")
            self.names[e] = f"r{m}"


def c_of(kernel: Kernel, letter: str, name: str) -> str:
    """The C function `name` of a kernel, in float ("f") or double ("d")."""
    writer = _Writer(kernel, letter)
    return writer.rows(name) if kernel.by_rows else writer.flat(name)
