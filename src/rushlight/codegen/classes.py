"""The loss of class numbers as C: one look at each row, and one number written for its gradient."""

from __future__ import annotations

_TYPED = """
/* The sum of -x[i, t[i]] over the rows that count, times the weights of their classes if there are
   some, and what they weigh together; each alone into y, if there is one. 0 if a target is no class. */
static int nll_rows_@L(const void *given, const int64_t *t, const void *weights, npy_intp rows, npy_intp n,
                       int64_t ignored, void *each, double *sum, double *weight)
{
    const @T *x = given, *w = weights;
    @T *y = each;
    *sum = 0;
    *weight = 0;
    for (npy_intp i = 0; i < rows; i++) {
        if (t[i] == ignored) {
            if (y) y[i] = 0; /* of 16 bits too */
            continue;
        }
        if (t[i] < 0 || t[i] >= n) return 0;
        const @W share = w ? @WIDE(w[t[i]]) : 1, v = -@WIDE(x[i * n + t[i]]) * share;
        if (y) y[i] = @ROUND(v);
        *sum += v;
        *weight += share;
    }
    return 1;
}

static int nll_back_rows_@L(const void *given, npy_intp step, const int64_t *t, const void *weights, npy_intp rows,
                            npy_intp n, int64_t ignored, int mean, void *zeros)
{
    const @T *g = given, *w = weights;
    @T *out = zeros;
    double weight = 0;
    for (npy_intp i = 0; i < rows; i++) {
        if (t[i] == ignored) continue;
        if (t[i] < 0 || t[i] >= n) return 0;
        weight += w ? @WIDE(w[t[i]]) : 1;
    }
    for (npy_intp i = 0; i < rows; i++)
        if (t[i] != ignored) {
            const @W share = @WIDE(g[i * step]);
            out[i * n + t[i]] = @ROUND(-(mean ? share / (@W)weight : share) * (w ? @WIDE(w[t[i]]) : 1));
        }
    return 1;
}

static void nll_total_@L(double found, void *y) { *(@T *)y = @ROUND((@W)found); }
"""

_ENTRIES = """
typedef struct {
    int (*rows)(const void *, const int64_t *, const void *, npy_intp, npy_intp, int64_t, void *, double *, double *);
    int (*back)(const void *, npy_intp, const int64_t *, const void *, npy_intp, npy_intp, int64_t, int, void *);
    void (*total)(double, void *);
} NllLoops;

/* The functions for a type; NULL if there are none. */
static const NllLoops *nll_loops(int type) {
    static const NllLoops all[] = {@ALL};
    if (is_half(type)) return &all[type == NPY_HALF ? 2 : 3];
    return type == NPY_FLOAT ? &all[0] : type == NPY_DOUBLE ? &all[1] : NULL;
}

static PyArrayObject *class_numbers(PyObject *given) {
    if (!PyArray_CheckExact(given)) return NULL;
    PyArrayObject *t = (PyArrayObject *)given;
    return PyArray_TYPE(t) == NPY_INT64 && PyArray_NDIM(t) == 1 && PyArray_ISCARRAY_RO(t) ? t : NULL;
}

/* Whether these can be the weights of so many classes; where they are, NULL if there are none. */
static int class_weights(PyObject *given, int type, npy_intp classes, void **weights) {
    *weights = NULL;
    if (given == Py_None) return 1;
    if (!PyArray_CheckExact(given)) return 0;
    PyArrayObject *w = (PyArrayObject *)given;
    *weights = PyArray_DATA(w);
    return PyArray_TYPE(w) == type && PyArray_NDIM(w) == 1 && PyArray_DIM(w, 0) == classes && PyArray_ISCARRAY_RO(w);
}

/* nll(reduction, ignored, x, target, weight): 0 each, 1 the mean, 2 the sum; None for other arrays,
   and where a target is no class */
static PyObject *nll(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 5 || !PyArray_CheckExact(args[2])) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)args[2], *t = class_numbers(args[3]);
    const int type = PyArray_TYPE(x);
    const NllLoops *loops = nll_loops(type);
    if (t == NULL || loops == NULL) Py_RETURN_NONE;
    if (PyArray_NDIM(x) != 2 || !PyArray_ISCARRAY_RO(x) || PyArray_DIM(x, 0) != PyArray_DIM(t, 0)) Py_RETURN_NONE;
    const long how = PyLong_AsLong(args[0]);
    const int64_t ignored = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred()) return NULL;
    npy_intp rows = PyArray_DIM(x, 0), n = PyArray_DIM(x, 1);
    void *weights;
    if (!class_weights(args[4], type, n, &weights)) Py_RETURN_NONE;
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(how == 0, &rows, type, 0);
    if (y == NULL) return NULL;
    double sum, weight;
    void *each = how == 0 ? PyArray_DATA(y) : NULL;
    const int fits = loops->rows(PyArray_DATA(x), PyArray_DATA(t), weights, rows, n, ignored, each, &sum, &weight);
    if (!fits) {
        Py_DECREF(y);
        Py_RETURN_NONE;
    }
    if (how) loops->total(how == 1 ? sum / weight : sum, PyArray_DATA(y));
    return (PyObject *)y;
}

/* nll_back(reduction, ignored, classes, g, target, weight): its gradient by x */
static PyObject *nll_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 6 || !PyArray_CheckExact(args[3])) Py_RETURN_NONE;
    PyArrayObject *g = (PyArrayObject *)args[3], *t = class_numbers(args[4]);
    const int type = PyArray_TYPE(g);
    const NllLoops *loops = nll_loops(type);
    if (t == NULL || loops == NULL) Py_RETURN_NONE;
    const long how = PyLong_AsLong(args[0]);
    const int64_t ignored = PyLong_AsLongLong(args[1]);
    npy_intp shape[2] = {PyArray_DIM(t, 0), PyLong_AsSsize_t(args[2])};
    if (PyErr_Occurred()) return NULL;
    if (PyArray_NDIM(g) != (how == 0) || !PyArray_ISCARRAY_RO(g)) Py_RETURN_NONE;
    if (how == 0 && PyArray_DIM(g, 0) != shape[0]) Py_RETURN_NONE;
    void *weights;
    if (!class_weights(args[5], type, shape[1], &weights)) Py_RETURN_NONE;
    PyArrayObject *y = (PyArrayObject *)PyArray_ZEROS(2, shape, type, 0);
    if (y == NULL) return NULL;
    const int fits = loops->back(
        PyArray_DATA(g), how == 0, PyArray_DATA(t), weights, shape[0], shape[1], ignored, how == 1, PyArray_DATA(y));
    if (fits) return (PyObject *)y;
    Py_DECREF(y);
    Py_RETURN_NONE;
}
"""

METHODS = """
    {"nll", (PyCFunction)(void (*)(void))nll, METH_FASTCALL,
     "nll(reduction, ignored, x, target, weight): the loss of class numbers, or None."},
    {"nll_back", (PyCFunction)(void (*)(void))nll_back, METH_FASTCALL,
     "nll_back(reduction, ignored, classes, g, target, weight): its gradient, or None."},
"""


# a letter, what lies in memory, what it is computed in, and the ways to that and back
_KINDS = (
    ("f", "float", "float", "", ""),
    ("d", "double", "double", "", ""),
    ("h", "uint16_t", "float", "float_of", "half_of"),
    ("b", "uint16_t", "float", "float_of_bfloat", "bfloat_of"),
)


def c_classes() -> str:
    """The C of all of it."""
    typed = []
    for letter, kind, wide, widen, narrow in _KINDS:
        text = _TYPED.replace("@WIDE", widen).replace("@ROUND", narrow).replace("@W", wide)
        typed.append(text.replace("@T", kind).replace("@L", letter))
    loops = [f"{{nll_rows_{k[0]}, nll_back_rows_{k[0]}, nll_total_{k[0]}}}" for k in _KINDS]
    return "\n".join([*typed, _ENTRIES.replace("@ALL", ", ".join(loops))])
