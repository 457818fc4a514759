"""The C module that holds the kernels, `rushlight._kernels`: how Python calls one.

A kernel is an object that is called with NumPy arrays and gives new ones; or None, if it is not
made for such arrays, and then the caller goes the way over NumPy. `bind` gives it the numbers that
are its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rushlight.codegen import (
    attention,
    call_site,
    classes,
    halves,
    looks,
    makers,
    margins,
    matrices,
    members,
    moves,
    multithreading,
    scans,
    sorting,
    strides,
    tails,
    vectors,
)
from rushlight.codegen.draws import c_draws
from rushlight.codegen.expressions import (
    ANY,
    EACH,
    NONE,
    ROW,
    Expr,
    Kernel,
    in_order,
    with_number,
)
from rushlight.codegen.language import COUNT, c_of, c_of_columns, splits
from rushlight.codegen.mathematics import FUSED, c_functions
from rushlight.codegen.memory import c_calls, c_family
from rushlight.codegen.numpy_loops import c_loops
from rushlight.codegen.products import METHODS, c_products
from rushlight.codegen.public_function import PUBLIC_FUNCTION
from rushlight.codegen.verifier import verify

_PARTS = (
    call_site, classes, looks, matrices, multithreading, scans, moves, members, makers, sorting, margins,
    attention, strides, vectors,
)  # fmt: skip
LIMIT = COUNT  # of inputs, of outputs, of parameters
INPUTS = 4  # of an op whose gradients have kernels

_HEAD = """/* Written by rushlight.codegen: see there. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Not every loop needs all that is at hand, and what is written for all types asks integers, too,
   whether they are NaN. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#endif

/* Of a function that moves numbers there is one for each sort of processor, too. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define CLONES
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define X86(...) __VA_ARGS__
#else
#define X86(...)
#endif

/* Memory of a thread for rows on their way; it grows, and is kept. */
static void *scratch(size_t bytes) {
    static _Thread_local void *memory;
    static _Thread_local size_t size;
    if (bytes > size) {
        free(memory);
        memory = malloc(bytes);
        size = memory ? bytes : 0;
        if (!memory) Py_FatalError("rushlight: no memory for a row");
    }
    return memory;
}
"""

_TYPES = """
#define SORTS (1 X86(+ 2)) /* of processors; `processor` says which runs here */
#define ALL_AXES -1
typedef void (*over_elements)(char **in, char **out, npy_intp n, const double *p);
typedef void (*over_rows)(char **in, char **out, npy_intp rows, npy_intp n, const double *p);
typedef void (*over_columns)(char **in, char **out, npy_intp n, npy_intp inner, npy_intp w, const double *p);
typedef struct {
    const char *name;
    const char *inputs;  /* what each is: e(ach), b for truths of each, r(ow), c(olumn), o(ne);
                            - for any, which is not read, n for None */
    const char *outputs; /* likewise; R is a row whose axis stays */
    int count;           /* of inputs */
    int params;
    int by_rows;         /* 2: the whole array is one row */
    int loops;           /* over a row */
    int counts;          /* whether it asks how many elements there are */
    int above;           /* the parameter that a row must have more elements than, or -1 */
    int follows;         /* results of each element lie as the inputs do: those must agree on it */
    int splits;          /* numbers that are kept of a part of a row, 0 if rows stay whole */
    void *functions[SORTS][6]; /* in float, in double; over columns in float, in double; of elements:
                                  with a number as the second operand, and as the first */
} Spec;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    const Spec *spec;
    int keeps;           /* axes that are reduced stay, as 1 */
    int axes;            /* that are reduced, how many: those in `axis` */
    int axis[@LIMIT];
    double params[@LIMIT];
} Kernel;
"""

_TAIL = """
static int best_processor; /* that runs here */
static const Spec specs[] = {
%(specs)s
    {NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, {{NULL}}}
};

static PyObject *call_typed(const Kernel *kernel, PyObject *const *args, Py_ssize_t count) {
    return kernel->spec->by_rows ? call_rows(kernel, args, count) : call_elements(kernel, args, count);
}

static PyObject *call_kernel(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    const Kernel *kernel = (const Kernel *)self;
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (names != NULL || count != kernel->spec->count) Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < count; k++)
        if (PyArray_CheckExact(args[k]) && PyArray_ITEMSIZE((PyArrayObject *)args[k]) == 2)
            return call_halves(kernel, args, count);
    return call_typed(kernel, args, count);
}

/* The same, for a rule that says something of its own about halves. */
static PyObject *call_wide(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    const Kernel *kernel = (const Kernel *)self;
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (names != NULL || count != kernel->spec->count) Py_RETURN_NONE;
    return call_typed(kernel, args, count);
}

/* Run a kernel over arrays of one shape whose last axes, at least, lie in one piece; all axes, if
   there are numbers among the inputs: where `all` has no array. */
static int run_strided(const Kernel *kernel, PyArrayObject **all, const double *numbers, int count, int results, int which)
{
    const int nd = PyArray_NDIM(all[0]);
    const npy_intp *dims = PyArray_DIMS(all[0]), unit = PyArray_ITEMSIZE(all[0]);
    char *at[2 * %(limit)d];
    npy_intp place[NPY_MAXDIMS] = {0}, n = 1, lines = 1;
    int outer = nd;
    if (PyArray_SIZE(all[0]) == 0) return 1;
    Work work;
    work.rooms = 0;
    for (int k = results; k < count; k++) work.rooms += all[k] == NULL;
    while (outer > 0) { /* as many axes as all have in one piece are one */
        for (int k = 0; k < count; k++)
            if (all[k] && dims[outer - 1] != 1 && PyArray_STRIDE(all[k], outer - 1) != n * unit) goto found;
        n *= dims[--outer];
    }
    if (work.rooms == 1 && count == 3 && results == 1) {
        const int at = all[1] ? 1 : 0;
        PyObject *y = call_with_number(kernel, all[2 - at], numbers[at], at, all[0]);
        Py_DECREF(y); /* None, or the result itself: nothing new was made */
        if (y != Py_None) return 1;
    }
    work.run = (over_elements)kernel->spec->functions[processor][which]; /* all in one piece */
    work.params = kernel->params;
    work.inputs = count - results;
    work.outputs = results;
    work.total = n;
    work.block = work.rooms ? BLOCK : n;
    work.is_double = which;
    for (int k = 0; k < count - results; k++) {
        work.in[k].data = all[results + k] ? PyArray_BYTES(all[results + k]) : NULL;
        work.in[k].number = numbers[k];
        work.in[k].unit = unit;
        work.in[k].sort = all[results + k] ? DENSE : SAME;
    }
    for (int k = 0; k < results; k++) {
        work.out[k] = PyArray_BYTES(all[k]);
        work.out_unit[k] = unit;
    }
    run_parts(work_elements, &work, n, BLOCK, n);
    return 1;
found:
    if (work.rooms || (outer == nd && nd > 0)) return 0;
    for (int d = 0; d < outer; d++) lines *= dims[d];
    for (int k = 0; k < count; k++) at[k] = PyArray_BYTES(all[k]);
    PyThreadState *saved = n * lines > MANY ? PyEval_SaveThread() : NULL;
    for (npy_intp line = 0;;) {
        ((over_elements)kernel->spec->functions[processor][which])(at + results, at, n, kernel->params);
        if (++line == lines) break;
        for (int d = outer - 1; d >= 0; d--) {
            place[d]++;
            for (int k = 0; k < count; k++) at[k] += PyArray_STRIDE(all[k], d);
            if (place[d] < dims[d]) break;
            for (int k = 0; k < count; k++) at[k] -= PyArray_STRIDE(all[k], d) * dims[d];
            place[d] = 0;
        }
    }
    if (saved) PyEval_RestoreThread(saved);
    return 1;
}

/* Run a kernel on these arrays (and numbers, among the inputs), if it can: 1, or 0 if it cannot. */
static int run_into(const Kernel *kernel, PyObject *const *results, Py_ssize_t outputs, PyObject *const *given, Py_ssize_t inputs)
{
    const Spec *spec = kernel->spec;
    PyArrayObject *all[2 * %(limit)d] = {NULL};
    double numbers[2 * %(limit)d] = {0};
    if (spec->by_rows || outputs != (Py_ssize_t)strlen(spec->outputs) || inputs != (Py_ssize_t)strlen(spec->inputs)) return 0;
    for (Py_ssize_t k = 0; k < outputs + inputs; k++) {
        PyObject *x = k < outputs ? results[k] : given[k - outputs];
        if (k > 0 && k >= outputs && spec->inputs[k - outputs] == 'e' && (PyFloat_CheckExact(x) || PyLong_CheckExact(x))) {
            numbers[k - outputs] = PyFloat_AsDouble(x);
            if (numbers[k - outputs] == -1 && PyErr_Occurred()) { PyErr_Clear(); return 0; }
            continue;
        }
        if (!PyArray_CheckExact(x)) return 0;
        PyArrayObject *a = all[k] = (PyArrayObject *)x;
        if (PyArray_TYPE(a) != PyArray_TYPE(all[0]) || !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) return 0;
        if (k < outputs && (!PyArray_ISWRITEABLE(a) || spec->outputs[k] != 'e')) return 0;
        if (PyArray_NDIM(a) != PyArray_NDIM(all[0])) return 0;
        for (int d = 0; d < PyArray_NDIM(a); d++)
            if (PyArray_DIM(a, d) != PyArray_DIM(all[0], d)) return 0;
    }
    const int type = PyArray_TYPE(all[0]), which = type == NPY_FLOAT ? 0 : 1;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || spec->functions[processor][which] == NULL) return 0;
    return run_strided(kernel, all, numbers, outputs + inputs, outputs, which);
}

/* kernel.into(results, *inputs): write into arrays that are there, which may be the inputs */
static PyObject *write_into(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count < 2 || !PyTuple_Check(args[0])) Py_RETURN_FALSE;
    PyObject *const *results = ((PyTupleObject *)args[0])->ob_item;
    return PyBool_FromLong(run_into((const Kernel *)self, results, PyTuple_GET_SIZE(args[0]), args + 1, count - 1));
}

/* kernel.update(first, *others): lists of arrays; of each set, one from every list, the kernel's
   results are written into all but the first. Gives the numbers of the sets that it left. */
static PyObject *update_lists(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *set[%(limit)d], *left = PyList_New(0);
    if (left == NULL) return NULL;
    for (Py_ssize_t k = 0; k < count; k++)
        if (count > %(limit)d || !PyList_CheckExact(args[k]) || PyList_GET_SIZE(args[k]) != PyList_GET_SIZE(args[0])) {
            Py_DECREF(left);
            PyErr_SetString(PyExc_TypeError, "update(lists of one length)");
            return NULL;
        }
    for (Py_ssize_t i = 0; count && i < PyList_GET_SIZE(args[0]); i++) {
        /* held, for other threads may change the lists while the kernel lets them run */
        for (Py_ssize_t k = 0; k < count; k++) Py_INCREF(set[k] = PyList_GET_ITEM(args[k], i));
        const int done = run_into((const Kernel *)self, set + 1, count - 1, set, count);
        for (Py_ssize_t k = 0; k < count; k++) Py_DECREF(set[k]);
        if (done) continue;
        PyObject *number = PyLong_FromSsize_t(i);
        if (number == NULL || PyList_Append(left, number) < 0) {
            Py_XDECREF(number);
            Py_DECREF(left);
            return NULL;
        }
        Py_DECREF(number);
    }
    return left;
}

static PyTypeObject Kernel_Type;

static Kernel *new_kernel(const Spec *spec) {
    Kernel *kernel = PyObject_New(Kernel, &Kernel_Type);
    if (kernel) {
        kernel->call = call_kernel;
        kernel->spec = spec;
        kernel->keeps = 0;
        kernel->axes = spec->by_rows == 2 ? ALL_AXES : 1;
        kernel->axis[0] = -1;
        for (int i = 0; i < %(limit)d; i++) kernel->params[i] = 0;
    }
    return kernel;
}

static Kernel *same_kernel(const Kernel *kernel) {
    Kernel *made = new_kernel(kernel->spec);
    if (made == NULL) return NULL;
    made->call = kernel->call;
    made->keeps = kernel->keeps;
    made->axes = kernel->axes;
    memcpy(made->axis, kernel->axis, sizeof(made->axis));
    memcpy(made->params, kernel->params, sizeof(made->params));
    return made;
}

/* kernel.over(axes, keeps): the kernel with these axes as the rows, None for all */
static PyObject *over_axes(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || (args[0] != Py_None && !PyTuple_Check(args[0]))) {
        PyErr_SetString(PyExc_TypeError, "over(axes, keeps)");
        return NULL;
    }
    if (args[0] != Py_None && PyTuple_GET_SIZE(args[0]) > %(limit)d) Py_RETURN_NONE;
    Kernel *kernel = same_kernel((Kernel *)self);
    if (kernel == NULL) return NULL;
    kernel->keeps = PyObject_IsTrue(args[1]);
    kernel->axes = args[0] == Py_None ? ALL_AXES : (int)PyTuple_GET_SIZE(args[0]);
    for (int k = 0; k < kernel->axes; k++) {
        kernel->axis[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(args[0], k));
        if (kernel->axis[k] == -1 && PyErr_Occurred()) {
            Py_DECREF(kernel);
            return NULL;
        }
    }
    return (PyObject *)kernel;
}

static PyObject *bind_kernel(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Spec *spec = ((Kernel *)self)->spec;
    if (count != spec->params) {
        PyErr_Format(PyExc_TypeError, "%%s takes %%d numbers, not %%zd", spec->name, spec->params, count);
        return NULL;
    }
    Kernel *kernel = same_kernel((Kernel *)self);
    if (kernel == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        kernel->params[i] = PyFloat_AsDouble(args[i]);
        if (kernel->params[i] == -1 && PyErr_Occurred()) {
            Py_DECREF(kernel);
            return NULL;
        }
    }
    return (PyObject *)kernel;
}

static PyObject *wide_kernel(PyObject *self, PyObject *none) {
    Kernel *kernel = same_kernel((Kernel *)self);
    if (kernel) kernel->call = call_wide;
    return (PyObject *)kernel;
}

static PyObject *show_kernel(PyObject *self) {
    return PyUnicode_FromFormat("<kernel %%s>", ((Kernel *)self)->spec->name);
}

static PyMethodDef kernel_methods[] = {
    {"bind", (PyCFunction)(void (*)(void))bind_kernel, METH_FASTCALL, "The kernel with these parameters."},
    {"over", (PyCFunction)(void (*)(void))over_axes, METH_FASTCALL,
     "over(axes, keeps): the kernel that reduces these axes, None for all."},
    {"wide", wide_kernel, METH_NOARGS, "The kernel for float32 and float64 alone."},
    {"into", (PyCFunction)(void (*)(void))write_into, METH_FASTCALL,
     "into(results, *inputs): write the results into these arrays; whether it could."},
    {"update", (PyCFunction)(void (*)(void))update_lists, METH_FASTCALL,
     "update(first, *others): the same for lists of arrays; the numbers of those that it left."},
    {NULL, NULL, 0, NULL}
};

static PyTypeObject Kernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._kernels.Kernel",
    .tp_basicsize = sizeof(Kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Kernel, call),
    .tp_call = PyVectorcall_Call,
    .tp_methods = kernel_methods,
    .tp_repr = show_kernel,
    .tp_doc = "A function of arrays, written by rushlight.codegen.",
};

%(family)s
/* use_processor(sort): take the functions for a sort of processors; which were taken before */
static PyObject *use_processor(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const long sort = count == 1 ? PyLong_AsLong(args[0]) : -1, before = processor;
    if (sort < 0 || sort > best_processor) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "use_processor(0...%%d)", best_processor);
        return NULL;
    }
    processor = (int)sort;
    return PyLong_FromLong(before);
}

static PyMethodDef functions[] = {
    {"family", (PyCFunction)(void (*)(void))make_family, METH_FASTCALL,
     "family(inputs, kernels): gradients of several inputs, by which of them are wanted."},
    {"of_given", (PyCFunction)(void (*)(void))call_of_given, METH_FASTCALL,
     "of_given(kernels, *arrays): that of the kernel for as many arrays as there are before None."},
    {"if_within", (PyCFunction)(void (*)(void))call_if_within, METH_FASTCALL,
     "if_within(kernel, low, high, x, *others): that of a kernel if all of x is between the two."},
    {"use_processor", (PyCFunction)(void (*)(void))use_processor, METH_FASTCALL,
     "use_processor(sort): take the functions for a sort of processors, 0 for any; which were taken."},
%(methods)s
    {NULL, NULL, 0, NULL}
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernels", "Kernels by name, in `table`.", -1, functions, NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit__kernels(void) {
    import_array();
    find_processor();
    best_processor = processor;
    find_threads();
    name_of_module = PyUnicode_InternFromString("__name__");
    if (name_of_module == NULL || !find_matmul() || !find_loops()) return NULL;
    if (PyType_Ready(&Kernel_Type) < 0 || PyType_Ready(&Family_Type) < 0 || PyType_Ready(&Look_Type) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition), *table = PyDict_New();
    if (module == NULL || table == NULL) return NULL;
    for (const Spec *spec = specs; spec->name; spec++) {
        Kernel *kernel = new_kernel(spec);
        if (kernel == NULL || PyDict_SetItemString(table, spec->name, (PyObject *)kernel) < 0) return NULL;
        Py_DECREF(kernel);
    }
    if (PyModule_AddObject(module, "table", table) < 0 || !add_draws(module) || !add_public(module)) return NULL;
    return module;
}
"""


def _letter(e: Expr) -> str:
    """What an input is, in a spec."""
    return {ANY: "-", NONE: "n"}.get(e.role, "b" if e.truth else e.role[0])


# The sorts of processors that kernels are compiled for. The first runs anywhere; on x86, where hardly
# any processor is so old, it is kept small: without SIMD, and functions are called, not repeated
# wherever they are used. Elsewhere it is the only one. The last has registers twice as wide as the
# one before: that makes a third of a difference to exp and its like and a tenth to sums, and none to
# what waits for memory; the others, and those of doubles, a sixth of the package, are left out.
SORTS = ("v1", "v3", "v4")
_X86 = "#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)"


def _renamed(end: str) -> str:
    """Let the functions of a number be those with `end` after their names."""
    return "\n".join(f"#undef {name}\n#define {name} {name}{end}" for name in FUSED)


def _called() -> str:
    """The functions of a number once more, with an o at the end, to be called."""
    types = {"f": "float", "d": "double"}
    return "\n".join(
        f"static __attribute__((noinline)) {types[name[-1]]} {name}o({types[name[-1]]} x) "
        f"{{ return {name}(x); }}"
        for name in FUSED
    )


_BEGIN = {
    "v1": f"""{_X86}
#pragma GCC optimize ("Os", "no-tree-vectorize")
#define SIMD(...)
{_called()}
{_renamed("o")}
#else
#define SIMD(...) _Pragma(#__VA_ARGS__)
#if defined(__aarch64__) /* multiplies and adds at one step */
{_renamed("q")}
#endif
#endif""",
    "v3": f"""{_X86}
#pragma GCC target ("arch=x86-64-v3")
{_renamed("q")}""",
    "v4": f"""{_X86}
#pragma GCC target ("arch=x86-64-v4")""",
}
_END = {"v1": "", "v3": "#endif", "v4": "#endif"}
_PRAGMA = re.compile(r"#pragma (omp simd.*)")


def _for_sorts(bodies: dict[str, str], texts_of: dict[str, list[str]]) -> Iterator[str]:
    """All functions, once for each sort of processors, the first time with what they are for."""
    for sort in SORTS:
        yield "#pragma GCC push_options"
        yield _BEGIN[sort]
        if sort == "v3":
            yield from _last_elements(bodies)
        for body, name in bodies.items():
            if sort == _sort_for(name, sort):
                if sort == "v1":
                    yield "\n/* " + "\n   ".join(texts_of.get(name, ["attention"])) + " */"
                    body = _PRAGMA.sub(r"SIMD(\1)", body)
                elif tails.is_flat(body):
                    body = tails.in_steps(body).replace("TAIL", f"{name}_tail")
                yield body.replace("NAME", f"{name}_{sort}")
        yield _END[sort]
        yield "#pragma GCC pop_options"


def _last_elements(bodies: dict[str, str]) -> Iterator[str]:
    """What loops by whole steps leave, one by one: see Note [Tails]."""
    yield '#pragma GCC push_options\n#pragma GCC optimize ("Os", "no-tree-vectorize")'
    for body, name in bodies.items():
        if tails.is_flat(body) and (text := tails.one_by_one(body)):
            yield text.replace("TAIL", f"{name}_tail")
    yield "#pragma GCC pop_options"


_GAINS = re.compile(r"reduction\(|" + "|".join(rf"{name}\(" for name in FUSED))


def _name(number: int, letter: str, body: str) -> str:
    """What a function is called; it ends in f if it gains by the widest registers."""
    return f"k{number}{letter if letter == 'd' or _GAINS.search(body) else 'n'}"


def _sort_for(name: str, sort: str) -> str:
    """Which of the sorts of a function is run on processors of a sort."""
    return "v3" if sort == "v4" and not name.endswith("f") else sort


def _loops(kernel: Kernel) -> int:
    """How many loops over a row it takes: one for reductions that depend on none, and so on."""
    levels: dict[Expr, int] = {}
    for e in in_order(kernel.outputs):
        levels[e] = max([levels[a] for a in e.args], default=0) + e.is_reduction
    return max(levels.values(), default=0) + any(e.role == EACH for e in kernel.outputs)


def _spec(kernel: Kernel, functions: list[str]) -> str:
    values = in_order(kernel.outputs)
    inputs = "".join(map(_letter, kernel.inputs))
    outputs = "".join(
        "R" if e.role == ROW and keeps else "b" if e.truth else e.role[0]
        for e, keeps in zip(kernel.outputs, kernel.keeps_axis)
    )
    numbers = [
        len(kernel.inputs), kernel.params, kernel.by_rows * (2 if kernel.whole else 1),
        _loops(kernel),
        int(any(e.word == "count" for e in values)), -1 if kernel.above is None else kernel.above,
        int(".vjp" in kernel.name and (not kernel.by_rows or "r" in inputs)), splits(kernel),
    ]  # fmt: skip
    return (
        f'    {{"{kernel.name}", "{inputs}", "{outputs}", {", ".join(map(str, numbers))}, '
        f"{{{_table(functions, 6)}}}}},"
    )


def _table(functions: list[str], most: int) -> str:
    """Up to `most` functions, for each sort of processors."""
    sorts = []
    for sort in SORTS:
        names = [f"{f}_{_sort_for(f, sort)}" for f in functions] + ["NULL"] * (
            most - len(functions)
        )
        text = f"{{{', '.join(names)}}}"
        sorts.append(f"X86(, {text})" if sort != "v1" else text)
    return " ".join(sorts)


def c_module(kernels: Iterable[Kernel]) -> str:
    """The text of the whole module."""
    types = (_TYPES + tails.C_ROOMS).replace("@LIMIT", str(LIMIT))
    parts = [_HEAD, c_functions(), c_products(), call_site.CALL_SITE]
    parts += [PUBLIC_FUNCTION, looks.LOOKS, strides.STRIDES]
    parts += [multithreading.THREADS, c_loops(), types]
    parts += [c_calls(LIMIT, INPUTS), moves.c_moves(), halves.c_halves(LIMIT)]
    parts += [scans.c_scans(), c_draws()]
    parts += [members.c_members(), makers.c_makers(), sorting.c_sorting(), margins.c_margins()]
    parts += [classes.c_classes(), matrices.C_MATRICES, vectors.c_vectors(), attention.HEAD]
    specs = []
    bodies = dict(attention.bodies())
    calls = attention.c_calls(_table(list(bodies.values()), 4))
    texts_of: dict[
        str, list[str]
    ] = {}  # what each function is for: kernels that do the same share it
    for kernel in kernels:
        verify(kernel)
        texts = [c_of(kernel, letter, "NAME") for letter in "fd"]
        if kernel.by_columns and not kernel.whole:
            texts += [c_of_columns(kernel, letter, "NAME") for letter in "fd"]
        for variant in with_number(kernel):
            texts += [c_of(variant, letter, "NAME") for letter in "fd"]
        names = []
        for at, body in enumerate(texts):
            names.append(bodies.setdefault(body, _name(len(bodies), "fd"[at % 2], body)))
            said = texts_of.setdefault(names[-1], [])
            if kernel.text not in said:
                said.append(kernel.text)
        specs.append(_spec(kernel, names))
    fill = {
        "specs": "\n".join(specs), "limit": LIMIT,
        "methods": METHODS + "".join(part.METHODS for part in _PARTS),
        "family": c_family(LIMIT, INPUTS),
    }  # fmt: skip
    return "\n".join([*parts, *_for_sorts(bodies, texts_of), calls, _TAIL % fill])
