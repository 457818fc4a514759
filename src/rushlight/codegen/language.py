"""The C of kernels: what is particular to C stands here, and in `mathematics`.

Note [Stages]
    A kernel over rows is a sequence of loops over the row. A loop ends with the reductions that
    can be finished by then, of which the next loop's values are made. What a later loop needs of
    an earlier one's it computes again, if that is cheap; else it was put aside, in the memory of a
    result that is not yet written or in scratch memory.

Note [Columns]
    Where the axis that is reduced is not the last one, rows are columns. The loops then go over the
    elements of up to `WIDE` columns side by side, and what there is of a row, there is of each of
    them, in an array. Elements of one column are added in sets of `_FEW`.

Note [Parts of rows]
    Long rows are reduced part by part, so that several threads may share them; the parts are the
    same for any number of threads. The parameter behind the count says which step it is: 1 reduces
    a part, and gives the numbers that the reductions have come to; 2 takes such numbers in place of
    elements, and goes on to the result; 0 does both at once. Kernels of one loop that give a number
    a row can do so.

Note [Sums in kernels]
    Elements are added in sets of `_SET` by SIMD lanes, each a handful of additions, and the sets
    in double, where that is the type itself with what each addition loses: the error is that of a
    set, however many there are. A lane of a set adds one after the other, and of equal numbers
    every addition errs to the same side: in double, where nothing wider rounds it away, four lanes
    add 16 each, as NumPy's do. What is made of a row's sums is computed
    in double too, and rounded where it meets the elements: the mean of equal numbers is theirs.
"""

from __future__ import annotations

from rushlight.codegen.expressions import (
    ANY,
    COLUMN,
    EACH,
    NONE,
    ONE,
    REDUCTIONS,
    ROW,
    Expr,
    Kernel,
    in_order,
)
from rushlight.codegen.numpy_loops import c_loop, c_of_many, is_loop

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
    "logical_and": "{0} & {1}", "logical_or": "{0} | {1}", "logical_not": "!{0}",
    "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "invert": "!{0}", "number": "{0}",
    "power": "pow({0}, {1})", "isnan": "{0} != {0}",
    "isinf": "r_fabs_{s}({0}) == INFINITY", "xlogy": "r_xlogy_{s}({0}, {1}, r_log_{s}({1}))",
    "where": "{0} ? {1} : {2}",
}  # fmt: skip
DEAR = frozenset(
    ("exp", "expm1", "log", "xlogy", "log1p", "tanh", "expit", "log_expit", "erf", "divide", "sqrt")
)
TRUTHS = frozenset(
    ("logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or", "invert")
)  # of truths; others of numbers
# along a row, where many lanes add; and along a column, where one does
_SET, _FEW = {"f": 256, "d": 64}, 16
# columns side by side: one loop goes over long lines; what several go over should stay in the cache
WIDE, FEWER = 2048, 256
COUNT = 12  # where the count of elements stands among the parameters
_STEP = COUNT + 1  # and the step of Note [Parts of rows]
SPLITS = 8  # numbers that are kept of a part, at the most
_TYPES = {"f": "float", "d": "double"}


def can_write(kernel: Kernel) -> bool:
    """Whether C has a word for all that a kernel does."""
    if is_loop(kernel, "d"):
        return True
    known = {*WORDS, "input", "param", "const", "count", "sum_rows", *REDUCTIONS}
    values = in_order(kernel.outputs)
    powers = [e for e in values if e.word == "power"]  # of parameters alone: no SIMD of libm's
    return all(e.word in known for e in values) and all(e.role == ONE for e in powers)


# what reductions start with; of those that are added in sets, also how the sets are joined
_LIMITS = {"reduce_max": "-INFINITY", "reduce_min": "INFINITY"}
_ADDED = {
    "reduce_sum": ("0", "+"), "wide_sum": ("0", "+"), "squares_from": ("0", "+"),
    "product": ("1", "*"),
}  # fmt: skip


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
        self.narrow: dict[Expr, str] = {}  # of those that are in the type too, not just in double
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
        self.lines.append("#pragma omp simd")
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
            return self.narrow.get(e, f"({self.type}){name}")
        return name

    def expression(self, e: Expr, wide: bool) -> str:
        """The C of a value whose operands are at hand; `wide` computes in double."""
        if e.word == "where":
            args = [self.operand(e.args[0], True, wide)]
            args += [self.operand(a, e.truth, wide) for a in e.args[1:]]
        else:
            args = [self.operand(a, e.word in TRUTHS, wide) for a in e.args]
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
                self.names[e] = f"p[{COUNT}]"
            elif e.word == "input":
                self.put(
                    f"const {self.type} o{self.number[e]} = *(const {self.type} *)in[{e.value}];"
                )
                self.names[e] = f"o{self.number[e]}"
            else:
                self.define(e, wide=not any(a.word == "input" for a in in_order((e,))))

    def head(self, name: str, size: str) -> None:
        self.depth = 0
        self.open(f"static void {name}(char **in, char **out, {size}, const double *p)")

    def output(self, k: int, e: Expr) -> None:
        """Write one element of a result."""
        self.put(f"y{k}[i] = {self.operand(e, e.truth, False)};")

    # --- element by element -----------------------------------------------------------------------
    def flat(self, name: str) -> str:
        self.head(name, "npy_intp n")
        if is_loop(self.kernel, self.letter):
            self.put(c_loop(self.kernel.outputs[0].word, self.letter))
            self.close()
            return "\n".join(self.lines)
        if (many := c_of_many(self.kernel, self.letter)) is not None:
            self.put(many)
        for e in self.kernel.inputs:
            if e.role == EACH and e in self.number:
                kind = "unsigned char" if e.truth else self.type
                self.put(f"const {kind} *x{e.value} = (const {kind} *)in[{e.value}];")
        for k, e in enumerate(self.kernel.outputs):
            kind = "unsigned char" if e.truth else self.type
            self.put(f"{kind} *y{k} = ({kind} *)out[{k}];")
        self.whole()
        self.loop("for (npy_intp i = 0; i < n; i++)")
        for e in self.order:
            if e.role == EACH:
                if e.word == "input":
                    kind = "int" if e.truth else self.type
                    self.put(f"const {kind} e{self.number[e]} = x{e.value}[i];")
                    self.names[e] = f"e{self.number[e]}"
                else:
                    self.define(e)
        for k, e in enumerate(self.kernel.outputs):
            self.output(k, e)
        self.close()
        self.close()
        return "\n".join(self.lines)

    # --- row by row: see Note [Stages] ------------------------------------------------------------
    def plan(self) -> None:
        """Which loops there are, and what each is for."""
        outputs = self.kernel.outputs
        self.levels: dict[Expr, int] = {}
        for e in self.order:
            self.levels[e] = max([self.levels[a] for a in e.args], default=0) + e.is_reduction
        self.last = max(self.levels[e] for e in outputs)
        self.wanted: list[list[Expr]] = [[] for _ in range(self.last + 1)]  # what each loop is for
        for e in self.order:
            if e.is_reduction:
                self.wanted[self.levels[e] - 1].append(e)
        self.each_outputs = [e for e in outputs if e.role == EACH]
        self.down = [e for e in outputs if e.word == "sum_rows"]  # sums over the rows
        # results are written by the last loop: until then their memory is free
        self.needs = [self.needed(tuple(e.args[0] for e in w)) for w in self.wanted]
        if self.each_outputs:
            self.needs[self.last] |= self.needed(tuple(self.each_outputs))
        for e in self.down:
            self.needs[self.levels[e]] |= self.needed(e.args)
        self.aside: dict[Expr, str] = {}
        free = [f"y{k}" for k, e in enumerate(outputs) if e.role == EACH and not e.truth]
        for e in self.order:
            if e.role == EACH and e.word in DEAR and sum(e in need for need in self.needs) > 1:
                self.aside[e] = free.pop(0) if free else f"z{len(self.aside)}"
        self.scratch = [slot for slot in self.aside.values() if slot[0] == "z"]
        self.ready: set[Expr] = set()  # put aside by an earlier loop

    def rows(self, name: str) -> str:
        self.plan()
        T, down = self.type, self.down
        self.head(name, "npy_intp rows, npy_intp n")
        if self.scratch or down:
            self.put(
                "double *memory = (double *)scratch("
                f"n * ({len(down)} * 8 + {len(self.scratch)} * sizeof({T})));"
            )
            for at, e in enumerate(down):
                self.put(f"double *a{self.number[e]} = memory + {at} * n;")
            for at, slot in enumerate(self.scratch):
                self.put(f"{T} *{slot} = ({T} *)(memory + {len(down)} * n) + {at} * n;")
            if down:
                self.put(f"memset(memory, 0, n * {len(down)} * sizeof(double));")
        self.whole()
        self.open("for (npy_intp r = 0; r < rows; r++)")
        for e in self.kernel.inputs:
            if e not in self.number:
                continue
            kind = "unsigned char" if e.truth else T
            base = f"(const {kind} *)in[{e.value}]"
            if e.role == EACH:
                self.put(f"const {kind} *x{e.value} = {base} + r * n;")
            elif e.role == COLUMN:
                self.put(f"const {kind} *x{e.value} = {base};")
            elif e.role == ROW:
                self.put(f"const {T} r{self.number[e]} = ({base})[r];")
                self.names[e] = f"r{self.number[e]}"
        for k, e in enumerate(self.kernel.outputs):
            kind = "unsigned char" if e.truth else T
            if e.role == EACH:
                self.put(f"{kind} *y{k} = ({kind} *)out[{k}] + r * n;")
        for level in range(self.last + 1):
            for e in self.made_of_rows(level):
                self.define(e, wide=True)
            final = self.each_outputs if level == self.last else []
            here = [e for e in down if self.levels[e] == level]
            if self.wanted[level] or final or here:
                self.stage(level, final, here)
        for k, e in enumerate(self.kernel.outputs):
            if e.role == ROW:
                self.put(f"(({T} *)out[{k}])[r] = {self.operand(e, e.truth, False)};")
        self.close()
        for k, e in enumerate(self.kernel.outputs):
            if e in down:
                self.open("for (npy_intp i = 0; i < n; i++)")
                self.put(f"(({T} *)out[{k}])[i] = ({T})a{self.number[e]}[i];")
                self.close()
        self.close()
        return "\n".join(self.lines)

    def made_of_rows(self, level: int) -> list[Expr]:
        """What is made of reductions before a loop."""
        return [
            e
            for e in self.order
            if e.role == ROW
            and self.levels[e] == level
            and not e.is_reduction
            and e.word != "input"
        ]

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

    def used(self, level: int, final: list[Expr], down: list[Expr]) -> tuple[set[Expr], set[Expr]]:
        """The values that a loop has to do with, and those of them that were put aside: these are
        not computed again, nor what only they are made of."""
        need = self.needs[level]
        read: set[Expr] = {e for e in need if e in self.ready}
        used: set[Expr] = set()
        stack = [e.args[0] for e in (*self.wanted[level], *down)] + final
        while stack:
            e = stack.pop()
            if e in used or e not in need:
                continue
            used.add(e)
            if e not in read:
                stack.extend(e.args)
        return used, read

    def elements(self, used: set[Expr], read: set[Expr], i: str) -> None:
        """Compute the values of one element."""
        for e in self.order:
            if e not in used:
                continue
            kind = "int" if e.truth else self.type
            if e.word == "input" or e in read:
                source = f"x{e.value}" if e.word == "input" else self.aside[e]
                self.put(f"const {kind} e{self.number[e]} = {source}[{i}];")
                self.names[e] = f"e{self.number[e]}"
            else:
                self.define(e)
                if e in self.aside:
                    self.put(f"{self.aside[e]}[{i}] = {self.names[e]};")

    def reduce(self, e: Expr, at: str) -> None:
        """Add one element to a reduction; `at` is "" or the column."""
        m, x = self.number[e], self.operand(e.args[0], False, False)
        if e.word in ("reduce_sum", "wide_sum"):
            self.put(f"q{m}{at} += {x};")
        elif e.word == "product":
            self.put(f"q{m}{at} *= {x};")
        elif e.word == "squares_from":
            self.put(f"const double d{m} = {x} - {self.operand(e.args[1], False, True)};")
            self.put(f"q{m}{at} += d{m} * d{m};")
        else:
            sign = ">" if e.word == "reduce_max" else "<"
            self.put(f"m{m}{at} = {x} {sign} m{m}{at} ? {x} : m{m}{at}; nan{m}{at} |= {x} != {x};")

    def stage(self, level: int, final: list[Expr], down: list[Expr]) -> None:
        """One loop over a row: for some reductions, for the results, for sums over the rows."""
        reduced, number = self.wanted[level], self.number
        used, read = self.used(level, final, down)
        sums = [e for e in reduced if e.word in _ADDED]
        limits = [e for e in reduced if e.word in _LIMITS]
        for e in limits:
            self.put(f"{self.type} m{number[e]} = {_LIMITS[e.word]}; int nan{number[e]} = 0;")
        for e in sums:
            lost = f", lost{number[e]} = 0" if self.letter == "d" else ""
            self.put(f"double s{number[e]} = {_ADDED[e.word][0]}{lost};")
        if splits(self.kernel):
            self.open(f"if (p[{_STEP}] == 2)")
            self.join_kept()
            self.close()
            self.open("else")
        if sums:
            many = _SET[self.letter]
            self.open(f"for (npy_intp from = 0; from < n; from += {many})")
            self.put(f"const npy_intp to = from + {many} < n ? from + {many} : n;")
        for e in sums:
            self.put(f"{self.sum_type(e)} q{number[e]} = {_ADDED[e.word][0]};")
        clauses = []
        for sign, letter, words in (
            ("+", "q", ("reduce_sum", "wide_sum", "squares_from")), ("*", "q", ("product",)),
            ("max", "m", ("reduce_max",)), ("min", "m", ("reduce_min",)), ("|", "nan", _LIMITS),
        ):  # fmt: skip
            found = [f"{letter}{number[e]}" for e in reduced if e.word in words]
            if found:
                clauses.append(f"reduction({sign}:{', '.join(found)})")
        self.lines.append(
            f"#pragma omp simd {' '.join(clauses)}" if clauses else "#pragma omp simd"
        )
        bounds = "npy_intp i = from; i < to" if sums else "npy_intp i = 0; i < n"
        self.open(f"for ({bounds}; i++)")
        outer = dict(self.names)
        self.elements(used, read, "i")
        for e in reduced:
            self.reduce(e, "")
        for e in down:
            self.put(f"a{number[e]}[i] += {self.operand(e.args[0], False, False)};")
        for k, e in enumerate(self.kernel.outputs):
            if e in final:
                self.output(k, e)
        self.close()
        for e in sums:
            self.join(e, "")
        if sums:
            self.close()
        if splits(self.kernel):
            self.close()
            self.put_kept()
        self.names = outer
        self.ready.update(e for e in used if e in self.aside)
        for e in reduced:
            self.put(f"const double r{number[e]} = {self.reduced(e, '')};")
            self.names[e] = f"r{number[e]}"

    def join(self, e: Expr, at: str) -> None:
        """Add a set to the sum of sets; in double with what that loses."""
        m, sign = self.number[e], _ADDED[e.word][1]
        if self.letter == "f" or sign == "*":
            self.put(f"s{m}{at} {sign}= q{m}{at};")
            return
        s, q, lost = f"s{m}{at}", f"q{m}{at}", f"lost{m}{at}"
        self.put(f"const double g{m} = {s} + {q};")
        self.put(
            f"{lost} += r_fabs_d({s}) >= r_fabs_d({q}) ? ({s} - g{m}) + {q} : ({q} - g{m}) + {s};"
        )
        self.put(f"{s} = g{m};")

    def reduced(self, e: Expr, at: str) -> str:
        """What a reduction came to."""
        m = self.number[e]
        if e.word in _LIMITS:
            return f"nan{m}{at} ? NAN : m{m}{at}"
        if self.letter == "f" or e.word == "product":
            return f"s{m}{at}"
        lost = f"lost{m}{at}"
        return f"s{m}{at} + ({lost} - {lost} == 0 ? {lost} : 0)"  # an infinity loses nothing

    def sum_type(self, e: Expr) -> str:
        """The type in which a set of elements is added."""
        return self.type if e.word == "reduce_sum" else "double"

    # --- long rows: see Note [Parts of rows] ------------------------------------------------------
    def kept(self, at: str) -> list[str]:
        """The variables of the reductions; `at` is "" or the column."""
        found = []
        for e in self.wanted[0]:
            m = self.number[e]
            found.append(f"nan{m}{at} ? NAN : m{m}{at}" if e.word in _LIMITS else f"s{m}{at}")
            if e.word in _ADDED and self.letter == "d":
                found.append(f"lost{m}{at}")
        return found

    def put_kept(self) -> None:
        self.open(f"if (p[{_STEP}] == 1)")
        self.put(f"double *part = (double *)out[0] + r * {splits(self.kernel)};")
        for at, value in enumerate(self.kept("")):
            self.put(f"part[{at}] = {value};")
        self.put("continue;")
        self.close()

    def join_kept(self) -> None:
        """Reduce the numbers of parts, which are in the place of the first input."""
        count = splits(self.kernel)
        self.put(f"const double *part = (const double *)in[0] + r * n * {count};")
        self.open(f"for (npy_intp i = 0; i < n; i++, part += {count})")
        at = 0
        for e in self.wanted[0]:
            m = self.number[e]
            if e.word in _LIMITS:
                sign = ">" if e.word == "reduce_max" else "<"
                self.put(f"m{m} = part[{at}] {sign} m{m} ? ({self.type})part[{at}] : m{m};")
                self.put(f"nan{m} |= part[{at}] != part[{at}];")
            else:
                self.put(f"const double q{m} = part[{at}];")
                self.join(e, "")
                if self.letter == "d":
                    at += 1
                    self.put(f"lost{m} += part[{at}];")
            at += 1
        self.close()

    # --- column by column: see Note [Columns] -----------------------------------------------------
    def columns(self, name: str) -> str:
        self.plan()
        self.wide = WIDE if self.last + bool(self.each_outputs) == 1 else FEWER
        T = self.type
        self.head(name, "npy_intp n, npy_intp inner, npy_intp w")
        if self.scratch:
            self.put(
                f"{T} *memory = ({T} *)scratch(n * {self.wide * len(self.scratch)} * sizeof({T}));"
            )
        self.whole()
        for e in self.kernel.inputs:
            if e in self.number and e.role == ROW:
                m = self.number[e]
                self.put(f"const {T} *r{m} = (const {T} *)in[{e.value}];")
                self.names[e] = f"r{m}[j]"
        for level in range(self.last + 1):
            made = self.made_of_rows(level)
            for e in made:
                self.put(
                    f"double r{self.number[e]}[{self.wide}]; {T} t{self.number[e]}[{self.wide}];"
                )
            if made:
                self.across()
                outer = dict(self.names)
                for e in made:
                    m = self.number[e]
                    self.put(f"const double v{m} = {self.expression(e, True)};")
                    self.put(f"r{m}[j] = v{m}; t{m}[j] = ({T})v{m};")
                    self.names[e] = f"v{m}"
                self.close()
                self.names = outer
                self.keep(made)
            final = self.each_outputs if level == self.last else []
            if self.wanted[level] or final:
                self.stage_across(level, final)
        for k, e in enumerate(self.kernel.outputs):
            if e.role == ROW:
                self.across()
                self.put(f"(({T} *)out[{k}])[j] = {self.operand(e, e.truth, False)};")
                self.close()
        self.close()
        return "\n".join(self.lines)

    def across(self) -> None:
        """Begin a loop over columns."""
        self.lines.append("#pragma omp simd")
        self.open("for (npy_intp j = 0; j < w; j++)")

    def keep(self, made: list[Expr]) -> None:
        """Values of columns are at hand from now on, in double and in the type."""
        for e in made:
            self.names[e] = f"r{self.number[e]}[j]"
            self.narrow[e] = f"t{self.number[e]}[j]"

    def stage_across(self, level: int, final: list[Expr]) -> None:
        """One loop over the rows of a set of columns, for some reductions or for the results."""
        reduced, number, T = self.wanted[level], self.number, self.type
        used, read = self.used(level, final, [])
        sums = [e for e in reduced if e.word in _ADDED]
        limits = [e for e in reduced if e.word in _LIMITS]
        for e in limits:
            self.put(f"{T} m{number[e]}[{self.wide}]; int nan{number[e]}[{self.wide}];")
        for e in sums:
            self.put(
                f"double s{number[e]}[{self.wide}]; {self.sum_type(e)} q{number[e]}[{self.wide}];"
            )
            if self.letter == "d":
                self.put(f"double lost{number[e]}[{self.wide}];")
        for e in reduced:
            self.put(f"double r{number[e]}[{self.wide}]; {T} t{number[e]}[{self.wide}];")
        if reduced:
            self.across()
            for e in limits:
                self.put(f"m{number[e]}[j] = {_LIMITS[e.word]}; nan{number[e]}[j] = 0;")
            for e in sums:
                self.put(f"s{number[e]}[j] = q{number[e]}[j] = {_ADDED[e.word][0]};")
                if self.letter == "d":
                    self.put(f"lost{number[e]}[j] = 0;")
            self.close()
        if splits(self.kernel):
            self.join_kept_across()
        self.open("for (npy_intp i = 0; i < n; i++)")
        for e in self.order:
            if e in used and e.word == "input":
                self.put(f"const {T} *x{e.value} = (const {T} *)in[{e.value}] + i * inner;")
        for k, e in enumerate(self.kernel.outputs):
            if e.role == EACH:
                kind = "unsigned char" if e.truth else T
                self.put(f"{kind} *y{k} = ({kind} *)out[{k}] + i * inner;")
        for at, slot in enumerate(self.scratch):
            self.put(f"{T} *{slot} = memory + ({at} * n + i) * {self.wide};")
        self.across()
        outer = dict(self.names)
        self.elements(used, read, "j")
        for e in reduced:
            self.reduce(e, "[j]")
        for k, e in enumerate(self.kernel.outputs):
            if e in final:
                self.put(f"y{k}[j] = {self.operand(e, e.truth, False)};")
        self.close()
        if sums:
            self.open(f"if (i % {_FEW} == {_FEW - 1} || i == n - 1)")
            self.across()
            for e in sums:
                self.join(e, "[j]")
                self.put(f"q{number[e]}[j] = {_ADDED[e.word][0]};")
            self.close()
            self.close()
        self.close()
        self.names = outer
        self.ready.update(e for e in used if e in self.aside)
        if splits(self.kernel):
            self.put_kept_across()
        if reduced:
            self.across()
            for e in reduced:
                m = number[e]
                self.put(f"r{m}[j] = {self.reduced(e, '[j]')};")
                self.put(f"t{m}[j] = ({T})r{m}[j];")
            self.close()
        self.keep(reduced)

    def join_kept_across(self) -> None:
        """The same as `join_kept`, of columns: a line for each number that is kept."""
        self.open(f"for (npy_intp i = 0; p[{_STEP}] == 2 && i < n; i++)")
        self.put(f"const double *part = (const double *)in[0] + i * {splits(self.kernel)} * inner;")
        self.across()
        at = 0
        for e in self.wanted[0]:
            m, value = self.number[e], f"part[{at} * inner + j]"
            if e.word in _LIMITS:
                sign = ">" if e.word == "reduce_max" else "<"
                self.put(f"m{m}[j] = {value} {sign} m{m}[j] ? ({self.type}){value} : m{m}[j];")
                self.put(f"nan{m}[j] |= {value} != {value};")
            elif self.letter == "f":
                self.put(f"s{m}[j] {_ADDED[e.word][1]}= {value};")
            else:
                self.put(f"q{m}[j] = {value};")
                self.join(e, "[j]")
                at += 1
                self.put(f"lost{m}[j] += part[{at} * inner + j];")
            at += 1
        self.close()
        self.close()
        self.put(f"if (p[{_STEP}] == 2) n = 0; /* there are no elements */")

    def put_kept_across(self) -> None:
        self.open(f"if (p[{_STEP}] == 1)")
        self.put("double *part = (double *)out[0];")
        self.across()
        for at, value in enumerate(self.kept("[j]")):
            self.put(f"part[{at} * inner + j] = {value};")
        self.close()
        self.put("return;")
        self.close()


def splits(kernel: Kernel) -> int:
    """How many numbers are kept of a part of a row, two for a sum of doubles; 0 if rows must stay
    whole: see Note [Parts of rows]."""
    values = in_order(kernel.outputs)
    reductions = [e for e in values if e.is_reduction]
    nested = any(e.is_reduction for r in reductions for e in in_order(r.args))
    inputs = {e.role for e in kernel.inputs}
    if not reductions or nested or not inputs <= {EACH, ONE, ANY, NONE}:
        return 0
    if any(e.role != ROW for e in kernel.outputs):
        return 0
    count = sum(2 if e.word in _ADDED else 1 for e in reductions)
    return count if count <= SPLITS else 0


def c_of(kernel: Kernel, letter: str, name: str) -> str:
    """The C function `name` of a kernel, in float ("f") or double ("d")."""
    writer = _Writer(kernel, letter)
    return writer.rows(name) if kernel.by_rows else writer.flat(name)


def c_of_columns(kernel: Kernel, letter: str, name: str) -> str:
    """The C function of a kernel over rows where these are columns."""
    return _Writer(kernel, letter).columns(name)
