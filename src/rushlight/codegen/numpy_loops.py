"""NumPy's own loops as kernels: an op that is one function of NumPy's takes its loop, called in C.

NumPy has SIMD of its own for these functions, which is as quick as ours or quicker. Called as
kernels they take threads, memory that is there, and arrays of 16 bits, as all others do, and no
frame of Python. The numbers are NumPy's, with two exceptions in float32: `exp` and `log` are
rushlight's, which are nearer to the exact value; and of `exp2` and `tan`, which NumPy rounds up to
3 units off, the loop in double is taken, and its results are rounded.

Note [Long lines]
    Of arithmetic both have the same bits. Called for a few elements our loops are quicker, by what
    NumPy looks at first; of many NumPy's are, by a tenth, which loads several registers before it
    stores one: where memory is what counts the two do not get in each other's way.
"""

from __future__ import annotations

from rushlight.codegen.expressions import EACH, Kernel

LOOPS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "sin", "cos", "tan", "arcsin", "arccos",
    "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
)  # fmt: skip
ARITHMETIC = (
    "add", "subtract", "multiply", "divide", "negative", "absolute", "floor", "ceil", "trunc",
    "rint",
)  # fmt: skip
_MANY = 16384  # elements from which arithmetic is NumPy's
_OURS = ("exp", "log")
_ROUNDED = ("exp2", "tan")


def is_loop(kernel: Kernel, letter: str) -> bool:
    """Whether a kernel is nothing but one of these functions, in float ("f") or double ("d")."""
    made = kernel.outputs[0]
    if letter == "f" and made.word in _OURS:
        return False
    return (
        len(kernel.outputs) == len(kernel.inputs) == 1
        and kernel.inputs[0].role == EACH
        and made.args == kernel.inputs
        and made.word in LOOPS
    )


def c_loop(word: str, letter: str) -> str:
    """The C that calls a loop, in float ("f") or double ("d")."""
    if letter == "f" and word in _ROUNDED:
        return f"numpy_loop_rounded(LOOP_{word}, (const float *)in[0], (float *)out[0], n);"
    return f"numpy_loop(LOOP_{word}, {'fd'.index(letter)}, in[0], out[0], n);"


def c_of_many(kernel: Kernel, letter: str) -> str | None:
    """The C that calls a loop of NumPy's for many elements: see Note [Long lines]. None if the
    kernel is not plain arithmetic of its inputs."""
    made = kernel.outputs[0]
    plain = all(e.role == EACH and e.value == i for i, e in enumerate(kernel.inputs))
    if len(kernel.outputs) > 1 or made.word not in ARITHMETIC or made.args != kernel.inputs:
        return None
    if not plain:
        return None
    given = "in[0], out[0]" if len(made.args) == 1 else "in[0], in[1], out[0]"
    call = "numpy_loop" if len(made.args) == 1 else "numpy_loop_of_two"
    return (
        f"if (n >= {_MANY}) {{ {call}(LOOP_{made.word}, {'fd'.index(letter)}, {given}, n); "
        "return; }"
    )


_TEXT = """
/* --- NumPy's own loops: see rushlight.codegen.numpy_loops --- */
#include <numpy/ufuncobject.h>
enum { @NUMBERS, LOOPS };
static const char *const loop_names[LOOPS] = { @NAMES };
static struct { PyUFuncGenericFunction run; void *data; } loops[LOOPS][2]; /* in float, in double */

static void numpy_loop(int loop, int wide, char *in, char *out, npy_intp n) {
    char *args[2] = {in, out};
    const npy_intp steps[2] = {wide ? 8 : 4, wide ? 8 : 4};
    loops[loop][wide].run(args, &n, steps, loops[loop][wide].data);
}

static void numpy_loop_of_two(int loop, int wide, char *one, char *two, char *out, npy_intp n) {
    char *args[3] = {one, two, out};
    const npy_intp unit = wide ? 8 : 4, steps[3] = {unit, unit, unit};
    loops[loop][wide].run(args, &n, steps, loops[loop][wide].data);
}

/* In double, and rounded once. */
static void numpy_loop_rounded(int loop, const float *in, float *out, npy_intp n) {
    double x[512];
    for (npy_intp from = 0; from < n; from += 512) {
        const npy_intp count = n - from < 512 ? n - from : 512;
        for (npy_intp i = 0; i < count; i++) x[i] = in[from + i];
        numpy_loop(loop, 1, (char *)x, (char *)x, count);
        for (npy_intp i = 0; i < count; i++) out[from + i] = (float)x[i];
    }
}

/* Find them in the ufuncs, the first of a type, as NumPy does; 0 and an ImportError where NumPy keeps them elsewhere. */
static int find_loops(void) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL) return 0;
    for (int loop = 0; loop < LOOPS; loop++) {
        PyObject *found = PyObject_GetAttrString(numpy, loop_names[loop]);
        if (found == NULL) break;
        const PyUFuncObject *ufunc = strcmp(Py_TYPE(found)->tp_name, "numpy.ufunc") == 0 ? (PyUFuncObject *)found : NULL;
        for (int k = 0; ufunc && k < ufunc->ntypes; k++)
            for (int wide = 0; wide < 2; wide++) {
                int fits = loops[loop][wide].run == NULL;
                for (int j = 0; j < ufunc->nargs; j++) fits &= ufunc->types[ufunc->nargs * k + j] == (wide ? NPY_DOUBLE : NPY_FLOAT);
                if (!fits) continue;
                loops[loop][wide].run = ufunc->functions[k];
                loops[loop][wide].data = ufunc->data ? ufunc->data[k] : NULL;
            }
        Py_DECREF(found); /* NumPy keeps it */
        if (loops[loop][0].run == NULL || loops[loop][1].run == NULL) PyErr_Format(PyExc_ImportError, "numpy.%s has no loop", loop_names[loop]);
        if (PyErr_Occurred()) break;
    }
    Py_DECREF(numpy);
    return !PyErr_Occurred();
}
"""


def c_loops() -> str:
    """The C of all of it."""
    numbers = ", ".join(f"LOOP_{word}" for word in (*LOOPS, *ARITHMETIC))
    names = ", ".join(f'"{word}"' for word in (*LOOPS, *ARITHMETIC))
    return _TEXT.replace("@NUMBERS", numbers).replace("@NAMES", names)
