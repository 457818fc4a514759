"""New arrays as C: of one number, of lists of numbers, or counted. Each function gives None for what it leaves to the
way over NumPy: other dtypes, arguments that are no plain numbers, and whatever is an error."""

from __future__ import annotations

_TEXT = """
/* --- makers: see rushlight.codegen.makers --- */
/* filled(sizes, value, type): what f(2, 3) or f((2, 3)) was given as sizes, of one number; of whatever
   the memory held if that is None */
static PyObject *filled(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[16];
    if (count != 3) Py_RETURN_NONE;
    const int nd = read_sizes(args[0], dims);
    const long type = PyLong_AsLong(args[2]);
    if (type == -1 && PyErr_Occurred()) return NULL;
    if (nd < 0 || type < 0 || type >= NPY_OBJECT) Py_RETURN_NONE;
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(nd, dims, (int)type, 0);
    if (y == NULL || args[1] == Py_None || fill_with(y, args[1])) return (PyObject *)y;
    Py_DECREF(y);
    Py_RETURN_NONE;
}

/* filled_as(value, x), likewise, in the shape and dtype of an array that lies row by row */
static PyObject *filled_as(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyArrayObject *x = count == 2 ? movable(args[1]) : NULL;
    if (x == NULL || !PyArray_IS_C_CONTIGUOUS(x) || PyArray_ISBYTESWAPPED(x)) Py_RETURN_NONE;
    PyArrayObject *y = new_rows(x, PyArray_NDIM(x), PyArray_DIMS(x));
    if (y == NULL || args[0] == Py_None || fill_with(y, args[0])) return (PyObject *)y;
    Py_DECREF(y);
    Py_RETURN_NONE;
}

/* spread(shape, kept, count, g): g / count, in the place of every element that it is a mean of; `kept` is the
   shape with 1 for the axes that were reduced */
#define SPREAD(T)                                                                                 \\
    for (npy_intp done = 0, from = 0; done < size; done += inner) {                               \\
        T *to = (T *)PyArray_DATA(y) + done;                                                      \\
        const T *g = (const T *)PyArray_DATA(x) + from;                                           \\
        if (along) for (npy_intp i = 0; i < inner; i++) to[i] = g[i] / (T)n;                      \\
        else for (npy_intp i = 0; i < inner; i++) to[i] = *g / (T)n;                              \\
        for (int d = nd - 2; d >= 0; d--) { /* on to the next line */                             \\
            from += step[d];                                                                      \\
            if (++at[d] < dims[d]) break;                                                         \\
            from -= dims[d] * step[d];                                                            \\
            at[d] = 0;                                                                            \\
        }                                                                                         \\
    }
static PyObject *spread(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[MOST_AXES], kept[MOST_AXES], step[MOST_AXES], at[MOST_AXES] = {0}, all = 1;
    if (count != 4 || !PyArray_CheckExact(args[3])) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)args[3];
    const int type = PyArray_TYPE(x), nd = ints_of(args[0], dims);
    const double n = PyFloat_AsDouble(args[2]);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (nd < 0 || ints_of(args[1], kept) != nd || (type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NONE;
    for (int d = nd - 1; d >= 0; d--) {
        if (kept[d] != 1 && kept[d] != dims[d]) Py_RETURN_NONE;
        step[d] = kept[d] == 1 ? 0 : all;
        all *= kept[d];
    }
    if (!PyArray_ISCARRAY_RO(x) || PyArray_SIZE(x) != all) Py_RETURN_NONE;
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(nd, dims, type, 0);
    if (y == NULL) return NULL;
    const npy_intp size = PyArray_SIZE(y), inner = nd ? dims[nd - 1] : 1;
    const int along = nd && step[nd - 1];
    if (type == NPY_FLOAT) SPREAD(float)
    else SPREAD(double)
    return (PyObject *)y;
}

enum { FLOATS = 1, INTS = 2, BOOLS = 4 };

/* Which kinds of numbers there are in lists in lists, as bits; 0 if they are not alike, or have others. */
static int kinds_in(PyObject *x, const npy_intp *dims, int nd) {
    if (nd == 0) return PyFloat_CheckExact(x) ? FLOATS : PyLong_CheckExact(x) ? INTS : PyBool_Check(x) ? BOOLS : 0;
    if ((!PyList_CheckExact(x) && !PyTuple_CheckExact(x)) || PySequence_Fast_GET_SIZE(x) != *dims) return 0;
    int all = 0;
    for (npy_intp i = 0; i < *dims; i++) {
        const int found = kinds_in(PySequence_Fast_GET_ITEM(x, i), dims + 1, nd - 1);
        if (found == 0) return 0;
        all |= found;
    }
    return all;
}

/* Write them one behind the other; the end, or NULL if one does not fit. */
static char *write_numbers(PyObject *x, const npy_intp *dims, int nd, int type, char *to) {
    if (nd) {
        for (npy_intp i = 0; to && i < *dims; i++)
            to = write_numbers(PySequence_Fast_GET_ITEM(x, i), dims + 1, nd - 1, type, to);
        return to;
    }
    if (type == NPY_BOOL) return *(npy_bool *)to = x == Py_True, to + 1;
    if (type == NPY_INT64) *(int64_t *)to = PyLong_AsLongLong(x);
    else {
        const double number = PyFloat_CheckExact(x) ? PyFloat_AS_DOUBLE(x) : PyLong_AsDouble(x);
        if (type == NPY_DOUBLE) *(double *)to = number;
        else *(float *)to = (float)number;
    }
    if (PyErr_Occurred()) return NULL;
    return to + (type == NPY_FLOAT ? 4 : 8);
}

/* of_numbers(data, floats): a number, or lists of numbers; of int64 or bool where all are ints or bools,
   of the type `floats` where there are floats and no bools */
static PyObject *of_numbers(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[16];
    int nd = 0;
    if (count != 2) Py_RETURN_NONE;
    long type = PyLong_AsLong(args[1]);
    if (type == -1 && PyErr_Occurred()) return NULL;
    for (PyObject *x = args[0]; PyList_CheckExact(x) || PyTuple_CheckExact(x); nd++) {
        if (nd == 16 || PySequence_Fast_GET_SIZE(x) == 0) Py_RETURN_NONE;
        dims[nd] = PySequence_Fast_GET_SIZE(x);
        x = PySequence_Fast_GET_ITEM(x, 0);
    }
    const int kinds = kinds_in(args[0], dims, nd);
    if (kinds == INTS) type = NPY_INT64;
    else if (kinds == BOOLS) type = NPY_BOOL;
    else if (!(kinds & FLOATS) || kinds & BOOLS || (type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NONE;
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(nd, dims, (int)type, 0);
    if (y == NULL || write_numbers(args[0], dims, nd, (int)type, PyArray_BYTES(y))) return (PyObject *)y;
    PyErr_Clear(); /* an int that is too large: others tell of it */
    Py_DECREF(y);
    Py_RETURN_NONE;
}

/* counted(given, type, floats): (end,), (start, end) or (start, end, step) of ints and floats. type
   is that of the result; -1: int64, or `floats` if there is a float among them. */
static PyObject *counted(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    double p[3] = {0, 0, 1};
    int whole = 1;
    if (count != 3 || !PyTuple_CheckExact(args[0])) Py_RETURN_NONE;
    const Py_ssize_t given = PyTuple_GET_SIZE(args[0]);
    if (given < 1 || given > 3) Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < given; k++) {
        PyObject *const item = PyTuple_GET_ITEM(args[0], k);
        double x;
        if (PyFloat_CheckExact(item)) { x = PyFloat_AS_DOUBLE(item); whole = 0; }
        else if (PyLong_CheckExact(item)) x = PyLong_AsDouble(item);
        else Py_RETURN_NONE;
        if (x == -1 && PyErr_Occurred()) PyErr_Clear(), x = NAN;
        if (!(fabs(x) < 0x1p52)) Py_RETURN_NONE; /* beyond, ints are no doubles */
        p[given == 1 ? 1 : k] = x;
    }
    long type = PyLong_AsLong(args[1]), floats = PyLong_AsLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    if (type < 0) type = whole ? NPY_INT64 : floats;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE && (type != NPY_INT64 || !whole)) || p[2] == 0) Py_RETURN_NONE;
    const double wide = ceil((p[1] - p[0]) / p[2]);
    if (!(wide >= 0 && wide < 1e9) || (p[2] > 0 ? p[1] < p[0] : p[1] > p[0])) Py_RETURN_NONE;
    npy_intp n = (npy_intp)wide;
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(1, &n, (int)type, 0);
    if (y == NULL) return NULL;
    const int64_t first = (int64_t)p[0], by = (int64_t)p[2];
    if (type == NPY_INT64) for (npy_intp i = 0; i < n; i++) ((int64_t *)PyArray_DATA(y))[i] = first + i * by;
    else if (type == NPY_DOUBLE) for (npy_intp i = 0; i < n; i++) ((double *)PyArray_DATA(y))[i] = (double)i * p[2] + p[0];
    else for (npy_intp i = 0; i < n; i++) ((float *)PyArray_DATA(y))[i] = (float)((double)i * p[2] + p[0]);
    return (PyObject *)y;
}
"""

METHODS = "".join(
    f'    {{"{n}", (PyCFunction)(void (*)(void)){n}, METH_FASTCALL, NULL}},\n'
    for n in ("filled", "filled_as", "of_numbers", "spread", "counted")
)


def c_makers() -> str:
    """The C of all of it, which stands behind that of `codegen.moves` and `codegen.draws`."""
    return _TEXT
