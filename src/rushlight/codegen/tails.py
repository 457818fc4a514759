"""How element-wise functions end whose SIMD loop takes whole steps alone; `module.py` asks.

Note [Tails]
A compiler ends a SIMD loop with loops of half and of quarter the width and with one that goes
element by element, each a copy of all that is computed: three fifths of a function. Here loops take
whole steps, so that no copies are made, and the few elements that are left are computed

- where that is cheap, one by one, in a function that AVX2 and AVX-512 share;
- where it is dear, by the same loop, from rooms of a whole step into such rooms.

Rows end as the compiler ends them: many are shorter than a step, and tails are then all there is.
"""

from __future__ import annotations

import re

from rushlight.codegen.mathematics import FUSED

_HEAD = re.compile(
    r"static void NAME\(char \*\*in, char \*\*out, npy_intp n, const double \*p\) \{"
)
_LOOP = "for (npy_intp i = 0; i < n; i++)"
_OPERAND = re.compile(r"(unsigned char|float|double) \*[xy]\d+ = .*(in|out)\[(\d+)\];")
_DEAR = re.compile(rf"\b({'|'.join((*FUSED, 'r_sqrt_f', 'r_sqrt_d'))})\(")
_PRAGMA = re.compile(r"#pragma omp simd.*\n")
_BYTES = {"unsigned char": 1, "float": 4, "double": 8}

C_ROOMS = """
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
/* The elements from `from` on, fewer than a step: `units` has a letter for the bytes of an element
   of each input, 0 if it is not of each element, and behind / those of the results. */
static __attribute__((noinline)) void in_rooms(
    over_elements run, char **in, char **out, npy_intp from, npy_intp n, npy_intp step,
    const double *p, const char *units)
{
    char rooms[2 * @LIMIT][64 * sizeof(double)] __attribute__((aligned(64)));
    char *at[2 * @LIMIT];
    int count = 0, inputs;
    for (; units[count] != '/'; count++) {
        const npy_intp unit = units[count] - '0';
        at[count] = unit ? rooms[count] : in[count];
        memset(rooms[count], 0, unit * step);
        memcpy(rooms[count], in[count] + from * unit, unit * (n - from));
    }
    inputs = count;
    for (; units[count + 1]; count++) at[count] = rooms[count];
    run(at, at + inputs, step, p);
    for (int k = inputs; k < count; k++) {
        const npy_intp unit = units[k + 1] - '0';
        memcpy(out[k - inputs] + from * unit, rooms[k], unit * (n - from));
    }
}
#endif
"""


def is_flat(text: str) -> bool:
    """Whether a function goes element by element, in a loop of its own."""
    return _HEAD.search(text) is not None and _LOOP in text


def _step(text: str) -> int:
    """As many as fill a register of AVX-512, of truths too where there are some."""
    return 64 if "unsigned char" in text else 16


def _units(text: str) -> str:
    """The bytes of operands' elements, for `in_rooms`."""
    found = {(m[2], int(m[3])): str(_BYTES[m[1]]) for m in _OPERAND.finditer(text)}
    ones = {("in", int(k)): "0" for k in re.findall(r"\bin\[(\d+)\]", text)}
    every = {**ones, **found}
    sides = []
    for side in ("in", "out"):
        last = max([k for where, k in every if where == side], default=-1)
        sides.append("".join(every.get((side, k), "0") for k in range(last + 1)))
    return "/".join(sides)


def in_steps(text: str) -> str:
    """The function, with a loop that takes whole steps and the rest elsewhere: `NAME` is its name,
    `TAIL` that of the function which `one_by_one` gives."""
    step = _step(text)
    rest = (
        f'in_rooms(NAME, in, out, n & -{step}, n, {step}, p, "{_units(text)}")'
        if _DEAR.search(text)
        else f"TAIL(in, out, n & -{step}, n, p)"
    )
    text = text.replace(_LOOP, _LOOP.replace("< n;", f"< (n & -{step});"), 1)
    return f"{text.removesuffix('}')}    if (n & {step - 1}) {rest};\n}}"


def one_by_one(text: str) -> str | None:
    """The function of the last elements, called `TAIL`; None where they go through rooms."""
    if _DEAR.search(text):
        return None
    text = _PRAGMA.sub("", text).replace(_LOOP, _LOOP.replace("= 0", "= from"), 1)
    return text.replace(
        "NAME(char **in, char **out, ", "TAIL(char **in, char **out, npy_intp from, "
    )
