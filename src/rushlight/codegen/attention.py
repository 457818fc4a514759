"""The rows of attention, in C: from scores to weights, and from the gradient of weights to that of
scores. `arrays.attention` makes the products before and after.

Note [Rows of attention]
    A row holds the scores of one query. The first function turns scores into weights where they
    lie, and gives the logarithm of the sum of exponentials, from which the second makes the weights
    anew; that one also turns the gradients of the weights into those of the scores. With causal
    attention a query sees the keys up to its own place: what is behind is 0, and is not computed,
    but for a few that fill up a vector. Places are ints, as wide as the numbers in the vectors they
    choose from.
"""

from __future__ import annotations

from collections.abc import Iterator

_TYPES = {"f": "float", "d": "double"}
_LANES = {"f": "16", "d": "8"}  # of the widest vector

_ROW = """@T *s = (@T *)a->scores + r * n;
        const @T scale = (@T)a->scale;
        const npy_intp last = a->first + r % a->rows + 1;
        const int seen = a->causal && last < n ? (int)last : n;
        const int full = (seen + @LANES - 1) / @LANES * @LANES, wide = full < n ? full : n;"""

_WEIGHTS = """
static void NAME(const Attention *a, npy_intp from, npy_intp to) {
    const int n = (int)a->n;
    for (npy_intp begin = from; begin < to; begin += 64) {
    const npy_intp stop = begin + 64 < to ? begin + 64 : to;
    @T *sums = (@T *)a->sums + begin, totals[64];
    for (npy_intp r = begin; r < stop; r++) {
        @ROW
        @T top = -INFINITY;
        int nan = 0;
#pragma omp simd reduction(max:top) reduction(|:nan)
        for (int i = 0; i < wide; i++) {
            const @T e = i < seen ? s[i] * scale : -INFINITY;
            s[i] = e;
            top = e > top ? e : top;
            nan |= e != e;
        }
        if (nan) top = NAN;
        if (a->hides && top == -INFINITY) top = 0; /* a query that sees nothing */
        double total = 0;
        for (int set = 0; set < wide; set += 256) {
            const int end = set + 256 < wide ? set + 256 : wide;
            @T sum = 0;
#pragma omp simd reduction(+:sum)
            for (int i = set; i < end; i++) {
                const @T e = r_exp_@L(s[i] - top);
                s[i] = e;
                sum += e;
            }
            total += sum;
        }
        if (a->hides && total == 0) total = 1;
        const @T over = (@T)(1 / total);
#pragma omp simd
        for (int i = 0; i < n; i++) s[i] = i < wide ? s[i] * over : 0;
        sums[r - begin] = top;
        totals[r - begin] = (@T)total;
    }
#pragma omp simd
    for (int i = 0; i < (int)(stop - begin); i++) sums[i] += r_log_@L(totals[i]);
    }
}
"""

_GRADIENTS = """
static void NAME(const Attention *a, npy_intp from, npy_intp to) {
    const int n = (int)a->n;
    for (npy_intp r = from; r < to; r++) {
        @ROW
        @T *d = (@T *)a->gradients + r * n;
        const @T factor = (@T)a->factor, sums = ((const @T *)a->sums)[r];
        double total = 0; /* of weights times their gradients */
        for (int set = 0; set < wide; set += 256) {
            const int end = set + 256 < wide ? set + 256 : wide;
            @T sum = 0;
#pragma omp simd reduction(+:sum)
            for (int i = set; i < end; i++) {
                const @T e = i < seen ? r_exp_@L(s[i] * scale - sums) : 0, g = i < seen ? d[i] : 0;
                s[i] = e;
                d[i] = g;
                sum += e * g;
            }
            total += sum;
        }
        const @T shift = (@T)(total - ((const @T *)a->sum_gradients)[r]);
#pragma omp simd
        for (int i = 0; i < n; i++) {
            const @T e = i < wide ? s[i] : 0;
            d[i] = i < wide ? (d[i] - shift) * e * factor : 0;
            s[i] = e;
        }
    }
}
"""

HEAD = """
typedef struct {
    char *scores, *gradients, *sums, *sum_gradients;
    npy_intp n, rows;     /* keys; queries of a matrix */
    npy_intp first;       /* the place of the first of these */
    double scale, factor; /* of scores; of their gradients */
    int causal, hides;
} Attention;
typedef void (*attention_rows)(const Attention *a, npy_intp from, npy_intp to);
"""

_ENTRY = """
static const attention_rows attention_functions[SORTS][4] = {@FUNCTIONS};
typedef struct { attention_rows run; const Attention *rows; } Attention_work;

static void work_attention(void *given, npy_intp from, npy_intp to) {
    const Attention_work *work = given;
    work->run(work->rows, from, to);
}

/* Arrays that lie in one piece, all of one type; the first two are written to. The first `wide` have
   a row for each number of the others. */
static int read_attention(PyObject *const *args, int count, int wide, char **into, Attention *a) {
    PyArrayObject *first = (PyArrayObject *)args[0];
    for (int k = 0; k < count; k++) {
        if (!PyArray_CheckExact(args[k])) return 0;
        PyArrayObject *x = (PyArrayObject *)args[k];
        if (!(k < 2 ? PyArray_ISCARRAY(x) : PyArray_ISCARRAY_RO(x))) return 0;
        if (PyArray_TYPE(x) != PyArray_TYPE(first)) return 0;
        if (k == 0) {
            const int nd = PyArray_NDIM(x);
            if (nd < 2 || PyArray_SIZE(x) == 0 || PyArray_DIM(x, nd - 1) > 1 << 30) return 0;
            a->n = PyArray_DIM(x, nd - 1);
            a->rows = PyArray_DIM(x, nd - 2);
        }
        if (PyArray_SIZE(x) != PyArray_SIZE(first) / (k < wide ? 1 : a->n)) return 0;
        into[k] = PyArray_BYTES(x);
    }
    const int type = PyArray_TYPE(first);
    return type == NPY_FLOAT ? 1 : type == NPY_DOUBLE ? 2 : 0;
}

static PyObject *run_attention(Attention *a, PyObject *first, int type, int which) {
    const npy_intp size = PyArray_SIZE((PyArrayObject *)first);
    Attention_work work = {attention_functions[processor][which + type - 1], a};
    run_parts(work_attention, &work, size / a->n, 1, size);
    Py_RETURN_TRUE;
}

/* attention_weights(scores, sums, scale, first, causal, hides): Note [Rows of attention] */
static PyObject *attention_weights(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    char *at[2];
    Attention a = {0};
    const int type = count == 6 ? read_attention(args, 2, 1, at, &a) : 0;
    if (!type) Py_RETURN_NONE;
    a.scores = at[0];
    a.sums = at[1];
    a.scale = PyFloat_AsDouble(args[2]);
    a.first = PyLong_AsSsize_t(args[3]);
    a.causal = PyObject_IsTrue(args[4]);
    a.hides = PyObject_IsTrue(args[5]);
    if (PyErr_Occurred()) return NULL;
    return run_attention(&a, args[0], type, 0);
}

/* attention_gradients(scores, gradients, sums, gradients of sums, scale, factor, first, causal) */
static PyObject *attention_gradients(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    char *at[4];
    Attention a = {0};
    const int type = count == 8 ? read_attention(args, 4, 2, at, &a) : 0;
    if (!type) Py_RETURN_NONE;
    a.scores = at[0];
    a.gradients = at[1];
    a.sums = at[2];
    a.sum_gradients = at[3];
    a.scale = PyFloat_AsDouble(args[4]);
    a.factor = PyFloat_AsDouble(args[5]);
    a.first = PyLong_AsSsize_t(args[6]);
    a.causal = PyObject_IsTrue(args[7]);
    if (PyErr_Occurred()) return NULL;
    return run_attention(&a, args[0], type, 2);
}
"""

METHODS = """
    {"attention_weights", (PyCFunction)(void (*)(void))attention_weights, METH_FASTCALL,
     "attention_weights(scores, sums, scale, first, causal, hides): in place; None if it cannot."},
    {"attention_gradients", (PyCFunction)(void (*)(void))attention_gradients, METH_FASTCALL,
     "attention_gradients(scores, gradients, sums, sum_gradients, scale, factor, first, causal)."},
"""


def bodies() -> Iterator[tuple[str, str]]:
    """The functions over rows, which are compiled for each sort of processors, and their names."""
    for title, text in (("weights", _WEIGHTS), ("gradients", _GRADIENTS)):
        for letter, kind in _TYPES.items():
            body = text.replace("@ROW", _ROW).replace("@LANES", _LANES[letter])
            yield body.replace("@T", kind).replace("@L", letter), f"attention_{title}_{letter}"


def c_calls(table: str) -> str:
    """How Python calls them; `table` has their names, for each sort of processors."""
    return _ENTRY.replace("@FUNCTIONS", table)
