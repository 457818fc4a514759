"""Attention, in C: from scores to weights, and from the gradients of weights to those of scores; and
all of it, with the products before and after, where there is no mask.

Note [Rows of attention]
    A row holds the scores of one query. The first function turns scores into weights where they
    lie, and gives the logarithm of the sum of exponentials, from which the second makes the weights
    anew; that one also turns the gradients of the weights into those of the scores. With causal
    attention a query sees the keys up to its own place: what is behind is 0, and is not computed,
    but for a few that fill up a vector. Places are ints, as wide as the numbers in the vectors they
    choose from.

Note [Heads of attention]
    A head is small: its keys, its values and the scores of a few queries stay in the cache. So the
    products of one head are made one after the other, `QUERIES` rows at a time, and of causal
    attention only the half that is seen. Products want the numbers they add along vectors: keys,
    and for gradients values, are copied with their axes exchanged. For linear algebra such products
    are too small to be quick.
"""

from __future__ import annotations

from collections.abc import Iterator

_TYPES = {"f": "float", "d": "double"}
_LANES = {"f": "16", "d": "8"}  # of the widest vector
_SET = {"f": "256", "d": "64"}  # that is summed at a time: Note [Sums in kernels] in `language`

_ROW = """@T *s = (@T *)a->scores + r * a->step;
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
        for (int set = 0; set < wide; set += @SET) {
            const int end = set + @SET < wide ? set + @SET : wide;
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
        @T *d = (@T *)a->gradients + r * a->step;
        const @T factor = (@T)a->factor, sums = ((const @T *)a->sums)[r];
        double total = 0; /* of weights times their gradients */
        for (int set = 0; set < wide; set += @SET) {
            const int end = set + @SET < wide ? set + @SET : wide;
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
    npy_intp step;        /* from one row to the next */
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
            a->n = a->step = PyArray_DIM(x, nd - 1);
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

_HEADS = """
#define QUERIES 64
#define SOME 16 /* rows that are limited together to what they see, and numbers of a vector */
typedef struct {
    PyArrayObject *q, *k, *v, *out, *g, *gq, *gk, *gv;
    char *sums, *sum_gradients;
    npy_intp rows, n, wide, d, e; /* queries, keys, these filled up; widths of keys and of values */
    double scale;
    int causal;
} Heads;

static char *head_of(PyArrayObject *x, npy_intp head) {
    char *at = PyArray_BYTES(x);
    for (int axis = PyArray_NDIM(x) - 3; axis >= 0; axis--) {
        at += head % PyArray_DIM(x, axis) * PyArray_STRIDE(x, axis);
        head /= PyArray_DIM(x, axis);
    }
    return at;
}

static npy_intp row_of(PyArrayObject *x) {
    return PyArray_STRIDE(x, PyArray_NDIM(x) - 2) / PyArray_ITEMSIZE(x);
}

/* Arrays of one type whose last axis lies in one piece, with the leading axes of the first. */
static int are_heads(PyObject *const *args, int count) {
    PyArrayObject *first = (PyArrayObject *)args[0];
    for (int k = 0; k < count; k++) {
        if (!PyArray_CheckExact(args[k])) return 0;
        PyArrayObject *x = (PyArrayObject *)args[k];
        const int nd = PyArray_NDIM(x), type = PyArray_TYPE(x);
        if (nd < 2 || nd != PyArray_NDIM(first) || type != PyArray_TYPE(first)) return 0;
        if ((type != NPY_FLOAT && type != NPY_DOUBLE) || PyArray_SIZE(x) == 0) return 0;
        if (!PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x)) return 0;
        if (PyArray_STRIDE(x, nd - 1) != PyArray_ITEMSIZE(x) || PyArray_DIM(x, nd - 1) % SOME) return 0;
        if (PyArray_STRIDE(x, nd - 2) % PyArray_ITEMSIZE(x)) return 0;
        for (int axis = 0; axis < nd - 2; axis++)
            if (PyArray_DIM(x, axis) != PyArray_DIM(first, axis)) return 0;
    }
    return 1;
}

static int is_of(PyArrayObject *x, npy_intp rows, npy_intp width) {
    const int nd = PyArray_NDIM(x);
    return PyArray_DIM(x, nd - 2) == rows && PyArray_DIM(x, nd - 1) == width;
}

/* The sizes of everything; whether keys and values fit them. */
static int plan_heads(Heads *h) {
    const int nd = PyArray_NDIM(h->q);
    h->rows = PyArray_DIM(h->q, nd - 2);
    h->n = PyArray_DIM(h->k, nd - 2);
    h->wide = (h->n + SOME - 1) / SOME * SOME;
    h->d = PyArray_DIM(h->q, nd - 1);
    h->e = PyArray_DIM(h->v, nd - 1);
    return h->n <= 1 << 30 && is_of(h->k, h->n, h->d) && is_of(h->v, h->n, h->e);
}

static int are_sums(const Heads *h, PyArrayObject *x) {
    return PyArray_TYPE(x) == PyArray_TYPE(h->q) && PyArray_ISCARRAY_RO(x) && PyArray_SIZE(x) == PyArray_SIZE(h->q) / h->d;
}

static PyObject *run_heads(Heads *h, part_of_work run) {
    const npy_intp heads = PyArray_SIZE(h->q) / h->rows / h->d;
    run_parts(run, h, heads, 1, heads * h->rows * h->n);
    Py_RETURN_TRUE;
}

/* attention_forward(q, k, v, out, sums, scale, causal): Note [Heads of attention] */
static PyObject *attention_forward(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Heads h = {0};
    if (count != 7 || !are_heads(args, 4) || !PyArray_CheckExact(args[4])) Py_RETURN_NONE;
    PyArrayObject *sums = (PyArrayObject *)args[4];
    h.q = (PyArrayObject *)args[0];
    h.k = (PyArrayObject *)args[1];
    h.v = (PyArrayObject *)args[2];
    h.out = (PyArrayObject *)args[3];
    if (!plan_heads(&h) || !is_of(h.out, h.rows, h.e) || !are_sums(&h, sums)) Py_RETURN_NONE;
    if (!PyArray_ISWRITEABLE(sums) || !PyArray_ISWRITEABLE(h.out)) Py_RETURN_NONE;
    h.sums = PyArray_BYTES(sums);
    h.scale = PyFloat_AsDouble(args[5]);
    h.causal = PyObject_IsTrue(args[6]);
    if (PyErr_Occurred()) return NULL;
    return run_heads(&h, PyArray_TYPE(h.q) == NPY_FLOAT ? work_forward_f : work_forward_d);
}

/* attention_backward(q, k, v, g, gq, gk, gv, sums, gradients of sums, scale, causal) */
static PyObject *attention_backward(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Heads h = {0};
    if (count != 11 || !are_heads(args, 7)) Py_RETURN_NONE;
    PyArrayObject **into[7] = {&h.q, &h.k, &h.v, &h.g, &h.gq, &h.gk, &h.gv};
    for (int k = 0; k < 7; k++) {
        *into[k] = (PyArrayObject *)args[k];
        if (k > 3 && !PyArray_ISWRITEABLE(*into[k])) Py_RETURN_NONE;
    }
    if (!plan_heads(&h) || !is_of(h.g, h.rows, h.e) || !is_of(h.gq, h.rows, h.d)) Py_RETURN_NONE;
    if (!is_of(h.gk, h.n, h.d) || !is_of(h.gv, h.n, h.e)) Py_RETURN_NONE;
    for (int k = 7; k < 9; k++) {
        if (!PyArray_CheckExact(args[k]) || !are_sums(&h, (PyArrayObject *)args[k])) Py_RETURN_NONE;
        *(k == 7 ? &h.sums : &h.sum_gradients) = PyArray_BYTES((PyArrayObject *)args[k]);
    }
    h.scale = PyFloat_AsDouble(args[9]);
    h.causal = PyObject_IsTrue(args[10]);
    if (PyErr_Occurred()) return NULL;
    return run_heads(&h, PyArray_TYPE(h.q) == NPY_FLOAT ? work_backward_f : work_backward_d);
}
"""

_HEAD_OF_TYPE = """
static void (*const product_@L[SORTS])(const @T *, npy_intp, npy_intp, const @T *, npy_intp, @T *,
    npy_intp, npy_intp, npy_intp, npy_intp, int) = {product_@L_v1 X86(, product_@L_v3, product_@L_v4)};

/* turned[t, j] = x[j, t] */
static void turn_@L(const @T *x, npy_intp row, npy_intp n, npy_intp width, @T *turned, npy_intp wide) {
    turn_@U((char *)turned, wide * sizeof(@T), (const char *)x, row * sizeof(@T), width, n);
    for (npy_intp t = 0; t < width; t++)
        for (npy_intp j = n; j < wide; j++) turned[t * wide + j] = 0;
}

/* How many keys the queries before `end` see. */
static npy_intp seen_@L(const Heads *h, npy_intp end) { return h->causal && end < h->n ? end : h->n; }

/* The products of `count` queries from `begin` on with all keys they see, which are turned. */
static void scores_@L(const Heads *h, const @T *x, npy_intp row, const @T *turned, npy_intp width,
                      npy_intp begin, npy_intp count, @T *s)
{
    for (npy_intp i = 0; i < count; i += SOME) {
        const npy_intp some = count - i < SOME ? count - i : SOME, end = begin + i + some;
        const npy_intp columns = (seen_@L(h, end) + SOME - 1) / SOME * SOME;
        product_@L[processor](x + (begin + i) * row, row, 1, turned, h->wide, s + i * h->wide,
                              h->wide, some, width, columns, 0);
    }
}

/* The weights, or other numbers for each query and key, times a row for each key. */
static void over_keys_@L(const Heads *h, const @T *s, const @T *x, npy_intp x_row, npy_intp width,
                         npy_intp begin, npy_intp count, @T *out, npy_intp row)
{
    for (npy_intp i = 0; i < count; i += SOME) {
        const npy_intp some = count - i < SOME ? count - i : SOME;
        product_@L[processor](s + i * h->wide, h->wide, 1, x, x_row, out + (begin + i) * row, row,
                              some, seen_@L(h, begin + i + some), width, 0);
    }
}

/* The same for each key, over the queries; added to what is there. */
static void over_queries_@L(const Heads *h, const @T *s, const @T *x, npy_intp x_row, npy_intp width,
                            npy_intp begin, npy_intp count, @T *out, npy_intp row)
{
    const npy_intp keys = seen_@L(h, begin + count);
    for (npy_intp j = 0; j < keys; j += SOME) {
        const npy_intp some = keys - j < SOME ? keys - j : SOME;
        const npy_intp first = h->causal && j > begin ? j - begin : 0; /* that sees key j */
        product_@L[processor](s + first * h->wide + j, 1, h->wide, x + (begin + first) * x_row, x_row,
                              out + j * row, row, some, count - first, width, 1);
    }
}

static void work_forward_@L(void *given, npy_intp from, npy_intp to) {
    const Heads *h = given;
    @T *turned = scratch((h->d + QUERIES) * h->wide * sizeof(@T)), *s = turned + h->d * h->wide;
    for (npy_intp head = from; head < to; head++) {
        const @T *q = (const @T *)head_of(h->q, head), *v = (const @T *)head_of(h->v, head);
        turn_@L((const @T *)head_of(h->k, head), row_of(h->k), h->n, h->d, turned, h->wide);
        for (npy_intp begin = 0; begin < h->rows; begin += QUERIES) {
            const npy_intp count = h->rows - begin < QUERIES ? h->rows - begin : QUERIES;
            char *sums = (char *)((@T *)h->sums + head * h->rows + begin);
            const Attention a = {(char *)s, NULL, sums, NULL, h->n, QUERIES, h->wide, begin, h->scale, 0, h->causal, 0};
            scores_@L(h, q, row_of(h->q), turned, h->d, begin, count, s);
            attention_functions[processor][@WHICH](&a, 0, count);
            over_keys_@L(h, s, v, row_of(h->v), h->e, begin, count, (@T *)head_of(h->out, head), row_of(h->out));
        }
    }
}

static void work_backward_@L(void *given, npy_intp from, npy_intp to) {
    const Heads *h = given;
    @T *k_turned = scratch((h->d + h->e + 2 * QUERIES) * h->wide * sizeof(@T));
    @T *v_turned = k_turned + h->d * h->wide, *s = v_turned + h->e * h->wide, *ds = s + QUERIES * h->wide;
    const npy_intp gk_row = row_of(h->gk), gv_row = row_of(h->gv);
    for (npy_intp head = from; head < to; head++) {
        const @T *q = (const @T *)head_of(h->q, head), *k = (const @T *)head_of(h->k, head);
        const @T *g = (const @T *)head_of(h->g, head);
        @T *gk = (@T *)head_of(h->gk, head), *gv = (@T *)head_of(h->gv, head);
        turn_@L(k, row_of(h->k), h->n, h->d, k_turned, h->wide);
        turn_@L((const @T *)head_of(h->v, head), row_of(h->v), h->n, h->e, v_turned, h->wide);
        for (npy_intp j = 0; j < h->n; j++) {
            memset(gk + j * gk_row, 0, h->d * sizeof(@T));
            memset(gv + j * gv_row, 0, h->e * sizeof(@T));
        }
        for (npy_intp begin = 0; begin < h->rows; begin += QUERIES) {
            const npy_intp count = h->rows - begin < QUERIES ? h->rows - begin : QUERIES;
            const npy_intp at = head * h->rows + begin;
            const Attention a = {
                (char *)s, (char *)ds, (char *)((@T *)h->sums + at), (char *)((@T *)h->sum_gradients + at),
                h->n, QUERIES, h->wide, begin, h->scale, h->scale, h->causal, 0};
            scores_@L(h, q, row_of(h->q), k_turned, h->d, begin, count, s);
            scores_@L(h, g, row_of(h->g), v_turned, h->e, begin, count, ds);
            attention_functions[processor][2 + @WHICH](&a, 0, count);
            over_keys_@L(h, ds, k, row_of(h->k), h->d, begin, count, (@T *)head_of(h->gq, head), row_of(h->gq));
            over_queries_@L(h, s, g, row_of(h->g), h->e, begin, count, gv, gv_row);
            over_queries_@L(h, ds, q, row_of(h->q), h->d, begin, count, gk, gk_row);
        }
    }
}
"""

METHODS = """
    {"attention_forward", (PyCFunction)(void (*)(void))attention_forward, METH_FASTCALL,
     "attention_forward(q, k, v, out, sums, scale, causal): into out and sums; None if it cannot."},
    {"attention_backward", (PyCFunction)(void (*)(void))attention_backward, METH_FASTCALL,
     "attention_backward(q, k, v, g, gq, gk, gv, sums, sum_gradients, scale, causal): likewise."},
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
            body = body.replace("@SET", _SET[letter])
            yield body.replace("@T", kind).replace("@L", letter), f"attention_{title}_{letter}"


def c_calls(table: str) -> str:
    """How Python calls them; `table` has their names, for each sort of processors."""
    begin, end = _HEADS.split("/* attention_forward(", 1)
    parts = [_ENTRY.replace("@FUNCTIONS", table), begin]
    for at, (letter, kind) in enumerate(_TYPES.items()):
        text = _HEAD_OF_TYPE.replace("@T", kind).replace("@L", letter)
        text = text.replace("@U", {"f": "u32", "d": "u64"}[letter])
        parts.append(text.replace("@WHICH", str(at)))
    return "\n".join([*parts, f"/* attention_forward({end}"])
