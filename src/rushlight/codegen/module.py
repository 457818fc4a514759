"""The C module that holds the kernels, `rushlight._kernels`: how Python calls one.

A kernel is an object that is called with NumPy arrays and gives new ones; or None, if it is not
made for such arrays, and then the caller goes the way over NumPy. `bind` gives it the numbers that
are its parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.codegen import looks, makers, margins, members, moves, sorting
from rushlight.codegen.draws import c_draws
from rushlight.codegen.expressions import ROW, Kernel
from rushlight.codegen.language import c_of
from rushlight.codegen.mathematics import c_functions
from rushlight.codegen.products import METHODS, c_products

LIMIT = 12  # of inputs, of outputs, of parameters

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

/* One function for each sort of processor; the loader takes the best that runs here. */
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

_TAIL = """
#define ALL 2
typedef void (*over_elements)(char **in, char **out, npy_intp n, const double *p);
typedef void (*over_rows)(char **in, char **out, npy_intp rows, npy_intp n, const double *p);
typedef struct {
    const char *name;
    const char *inputs;  /* what each is: e(ach), r(ow), c(olumn), o(ne) */
    const char *outputs; /* likewise; R is a row whose axis stays, b a truth of each */
    int params;
    int by_rows;         /* ALL: the whole array is one row */
    void *functions[2];  /* in float, in double */
} Spec;

static const Spec specs[] = {
%(specs)s
    {NULL, NULL, NULL, 0, 0, {NULL, NULL}}
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    const Spec *spec;
    double params[%(limit)d];
} Kernel;

#define MANY 50000 /* elements: from there on other threads may run meanwhile */

static PyObject *call_kernel(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    const Kernel *kernel = (const Kernel *)self;
    const Spec *spec = kernel->spec;
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    const char *kinds = spec->inputs;
    PyArrayObject *shape = NULL;
    char *in[%(limit)d], *out[%(limit)d];
    PyObject *made[%(limit)d];
    int type = -1, flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS;
    if (names != NULL) Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (kinds[k] == 0 || !PyArray_CheckExact(args[k])) Py_RETURN_NONE;
        PyArrayObject *a = (PyArrayObject *)args[k];
        const PyArray_Descr *descr = PyArray_DESCR(a);
        if (type < 0) type = descr->type_num;
        if (descr->type_num != type || descr->byteorder == '>' || !PyArray_ISALIGNED(a)) Py_RETURN_NONE;
        if (kinds[k] == 'e') {
            if (shape == NULL) shape = a;
            else {
                const int nd = PyArray_NDIM(a);
                if (nd != PyArray_NDIM(shape)) Py_RETURN_NONE;
                for (int d = 0; d < nd; d++)
                    if (PyArray_DIM(a, d) != PyArray_DIM(shape, d)) Py_RETURN_NONE;
            }
            flags &= PyArray_FLAGS(a);
        } else if (!(PyArray_FLAGS(a) & NPY_ARRAY_C_CONTIGUOUS)) Py_RETURN_NONE;
        in[k] = PyArray_BYTES(a);
    }
    if (kinds[count] != 0 || shape == NULL) Py_RETURN_NONE;
    const int which = type == NPY_FLOAT ? 0 : 1;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || spec->functions[which] == NULL) Py_RETURN_NONE;
    if (!(flags & NPY_ARRAY_C_CONTIGUOUS) && (spec->by_rows || flags == 0)) Py_RETURN_NONE;
    const int nd = PyArray_NDIM(shape);
    const npy_intp *dims = PyArray_DIMS(shape);
    const npy_intp size = PyArray_SIZE(shape);
    npy_intp columns = 1, rows = 1;
    if (spec->by_rows && size == 0) Py_RETURN_NONE;
    if (spec->by_rows == ALL) columns = size;
    else if (spec->by_rows) {
        if (nd == 0) Py_RETURN_NONE;
        columns = dims[nd - 1];
        rows = size / columns;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        const npy_intp expected = kinds[k] == 'r' ? rows : kinds[k] == 'c' ? columns : 1;
        if (kinds[k] != 'e' && PyArray_SIZE((PyArrayObject *)args[k]) != expected) Py_RETURN_NONE;
    }
    int results = 0;
    for (const char *kind = spec->outputs; *kind; kind++) {
        PyObject *y;
        if (*kind == 'e' || *kind == 'b')
            y = PyArray_EMPTY(nd, (npy_intp *)dims, *kind == 'b' ? NPY_BOOL : type, !(flags & NPY_ARRAY_C_CONTIGUOUS));
        else if (*kind == 'c') y = PyArray_EMPTY(1, &columns, type, 0);
        else {
            npy_intp kept[NPY_MAXDIMS];
            for (int d = 0; d < nd; d++) kept[d] = spec->by_rows == ALL || d == nd - 1 ? 1 : dims[d];
            y = PyArray_EMPTY(*kind == 'R' ? nd : spec->by_rows == ALL ? 0 : nd - 1, kept, type, 0);
        }
        if (y == NULL) {
            while (results) Py_DECREF(made[--results]);
            return NULL;
        }
        out[results] = PyArray_BYTES((PyArrayObject *)y);
        made[results++] = y;
    }
    PyThreadState *saved = size > MANY ? PyEval_SaveThread() : NULL;
    if (spec->by_rows) ((over_rows)spec->functions[which])(in, out, rows, columns, kernel->params);
    else ((over_elements)spec->functions[which])(in, out, size, kernel->params);
    if (saved) PyEval_RestoreThread(saved);
    if (results == 1) return made[0];
    PyObject *several = PyTuple_New(results);
    for (int k = 0; k < results; k++) {
        if (several) PyTuple_SET_ITEM(several, k, made[k]);
        else Py_DECREF(made[k]);
    }
    return several;
}

/* Run a kernel over arrays of one shape whose last axes, at least, lie in one piece. */
static int run_strided(const Kernel *kernel, PyArrayObject **all, int count, int results, int which)
{
    const int nd = PyArray_NDIM(all[0]);
    const npy_intp *dims = PyArray_DIMS(all[0]), unit = PyArray_ITEMSIZE(all[0]);
    char *at[2 * %(limit)d];
    npy_intp place[NPY_MAXDIMS] = {0}, n = 1, lines = 1;
    int outer = nd;
    if (PyArray_SIZE(all[0]) == 0) return 1;
    while (outer > 0) { /* as many axes as all have in one piece are one */
        for (int k = 0; k < count; k++)
            if (dims[outer - 1] != 1 && PyArray_STRIDE(all[k], outer - 1) != n * unit) goto found;
        n *= dims[--outer];
    }
found:
    if (outer == nd && nd > 0) return 0;
    for (int d = 0; d < outer; d++) lines *= dims[d];
    for (int k = 0; k < count; k++) at[k] = PyArray_BYTES(all[k]);
    PyThreadState *saved = n * lines > MANY ? PyEval_SaveThread() : NULL;
    for (npy_intp line = 0;;) {
        ((over_elements)kernel->spec->functions[which])(at + results, at, n, kernel->params);
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

/* kernel.into(results, *inputs): write into arrays that are there, which may be the inputs */
static PyObject *write_into(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Kernel *kernel = (const Kernel *)self;
    const Spec *spec = kernel->spec;
    PyArrayObject *all[2 * %(limit)d] = {NULL};
    if (count < 2 || !PyTuple_Check(args[0]) || spec->by_rows) Py_RETURN_FALSE;
    const Py_ssize_t results = PyTuple_GET_SIZE(args[0]), inputs = count - 1;
    if (results != (Py_ssize_t)strlen(spec->outputs) || inputs != (Py_ssize_t)strlen(spec->inputs)) Py_RETURN_FALSE;
    for (Py_ssize_t k = 0; k < results + inputs; k++) {
        PyObject *given = k < results ? PyTuple_GET_ITEM(args[0], k) : args[k - results + 1];
        if (!PyArray_CheckExact(given)) Py_RETURN_FALSE;
        PyArrayObject *a = all[k] = (PyArrayObject *)given;
        if (PyArray_TYPE(a) != PyArray_TYPE(all[0]) || !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) Py_RETURN_FALSE;
        if (k < results && (!PyArray_ISWRITEABLE(a) || spec->outputs[k] != 'e')) Py_RETURN_FALSE;
        if (PyArray_NDIM(a) != PyArray_NDIM(all[0])) Py_RETURN_FALSE;
        for (int d = 0; d < PyArray_NDIM(a); d++)
            if (PyArray_DIM(a, d) != PyArray_DIM(all[0], d)) Py_RETURN_FALSE;
    }
    const int type = PyArray_TYPE(all[0]), which = type == NPY_FLOAT ? 0 : 1;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || spec->functions[which] == NULL) Py_RETURN_FALSE;
    return PyBool_FromLong(run_strided(kernel, all, results + inputs, results, which));
}

static PyTypeObject Kernel_Type;

static Kernel *new_kernel(const Spec *spec) {
    Kernel *kernel = PyObject_New(Kernel, &Kernel_Type);
    if (kernel) {
        kernel->call = call_kernel;
        kernel->spec = spec;
        for (int i = 0; i < %(limit)d; i++) kernel->params[i] = 0;
    }
    return kernel;
}

static PyObject *bind_kernel(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const Spec *spec = ((Kernel *)self)->spec;
    if (count != spec->params) {
        PyErr_Format(PyExc_TypeError, "%%s takes %%d numbers, not %%zd", spec->name, spec->params, count);
        return NULL;
    }
    Kernel *kernel = new_kernel(spec);
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

static PyObject *show_kernel(PyObject *self) {
    return PyUnicode_FromFormat("<kernel %%s>", ((Kernel *)self)->spec->name);
}

static PyMethodDef kernel_methods[] = {
    {"bind", (PyCFunction)(void (*)(void))bind_kernel, METH_FASTCALL, "The kernel with these parameters."},
    {"into", (PyCFunction)(void (*)(void))write_into, METH_FASTCALL,
     "into(results, *inputs): write the results into these arrays; whether it could."},
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

static PyMethodDef functions[] = {
%(methods)s
    {NULL, NULL, 0, NULL}
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernels", "Kernels by name, in `table`.", -1, functions, NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit__kernels(void) {
    import_array();
    find_processor();
    if (PyType_Ready(&Kernel_Type) < 0 || PyType_Ready(&Look_Type) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition), *table = PyDict_New();
    if (module == NULL || table == NULL) return NULL;
    for (const Spec *spec = specs; spec->name; spec++) {
        Kernel *kernel = new_kernel(spec);
        if (kernel == NULL || PyDict_SetItemString(table, spec->name, (PyObject *)kernel) < 0) return NULL;
        Py_DECREF(kernel);
    }
    if (PyModule_AddObject(module, "table", table) < 0 || !add_draws(module)) return NULL;
    return module;
}
"""


def c_module(kernels: Iterable[Kernel]) -> str:
    """The text of the whole module."""
    parts = [_HEAD, c_functions(), c_products(), looks.LOOKS, c_draws()]
    parts += [moves.c_moves(), members.c_members(), makers.c_makers(), sorting.c_sorting()]
    parts.append(margins.c_margins())
    specs = []
    bodies: dict[str, str] = {}  # one function for kernels that do the same
    for kernel in kernels:
        names = []
        for letter in "fd":
            body = c_of(kernel, letter, "NAME")
            if body not in bodies:
                bodies[body] = f"k{len(bodies)}"
                parts.append(f"\n/* {kernel.name}: {kernel.text} */")
                parts.append(body.replace("NAME", bodies[body], 1))
            names.append(bodies[body])
        inputs = "".join(e.role[0] for e in kernel.inputs)
        outputs = "".join(
            "R" if e.role == ROW and keeps else "b" if e.truth else e.role[0]
            for e, keeps in zip(kernel.outputs, kernel.keeps_axis)
        )
        specs.append(
            f'    {{"{kernel.name}", "{inputs}", "{outputs}", {kernel.params}, '
            f"{'ALL' if kernel.whole else int(kernel.by_rows)}, {{{names[0]}, {names[1]}}}}},"
        )
    methods = METHODS + looks.METHODS + moves.METHODS + members.METHODS
    methods += makers.METHODS + sorting.METHODS + margins.METHODS
    return "\n".join(
        [*parts, _TAIL % {"specs": "\n".join(specs), "limit": LIMIT, "methods": methods}]
    )
