"""Members of arrays by index as C: rows that index arrays name, and elements along one axis.

An index is an array of int64 or int32 in one piece. Each function looks whether all of it is in
range before it does anything, and gives None if not: the way over NumPy then says what is wrong.

Note [Sums by place]
    Where many numbers go to few places, float32 is added up in double and rounded once. Elsewhere
    they are added one after the other.
"""

from __future__ import annotations

_READING = """
/* --- members: see rushlight.codegen.members --- */
typedef struct { const char *data; npy_intp count; int wide; } Places;

static inline npy_intp place_at(const Places *p, npy_intp i) {
    return p->wide ? (npy_intp)((const int64_t *)p->data)[i] : (npy_intp)((const int32_t *)p->data)[i];
}

static int places_of(PyObject *given, Places *found) {
    if (!PyArray_CheckExact(given)) return 0;
    PyArrayObject *a = (PyArrayObject *)given;
    const int type = PyArray_TYPE(a);
    if (!PyArray_ISCARRAY_RO(a) || (type != NPY_INT64 && type != NPY_INT32 && type != NPY_LONGLONG)) return 0;
    found->data = PyArray_BYTES(a);
    found->count = PyArray_SIZE(a);
    found->wide = PyArray_ITEMSIZE(a) == 8;
    return 1;
}

/* Whether all places are in [least, n). */
CLONES static int in_range_64(const int64_t *at, npy_intp count, int64_t least, int64_t n) {
    int wrong = 0;
#pragma omp simd reduction(|:wrong)
    for (npy_intp i = 0; i < count; i++) wrong |= (at[i] < least) | (at[i] >= n);
    return !wrong;
}

CLONES static int in_range_32(const int32_t *at, npy_intp count, int64_t least, int64_t n) {
    int wrong = 0;
#pragma omp simd reduction(|:wrong)
    for (npy_intp i = 0; i < count; i++) wrong |= (at[i] < least) | (at[i] >= n);
    return !wrong;
}

static int in_range(const Places *p, npy_intp least, npy_intp n) {
    return p->wide ? in_range_64((const int64_t *)p->data, p->count, least, n)
                   : in_range_32((const int32_t *)p->data, p->count, least, n);
}

/* within(least, n, index): True if all of an index is in [least, n); None if that is to be looked
   at otherwise */
static PyObject *within(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Places places;
    if (count != 3 || !places_of(args[2], &places)) Py_RETURN_NONE;
    const npy_intp least = PyLong_AsSsize_t(args[0]), n = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred()) { PyErr_Clear(); Py_RETURN_NONE; }
    if (in_range(&places, least, n)) Py_RETURN_TRUE;
    Py_RETURN_NONE;
}

/* --- rows: x[..., i, j, ...], for arrays i, j of one shape at neighbouring axes --- */
#define MOST_INDEXED 4
typedef struct {
    Places at[MOST_INDEXED];
    npy_intp sizes[MOST_INDEXED];
    int several;
    npy_intp before, count, rows, after; /* x is `before` times `rows` times `after` elements */
} Rows;

/* Read the index arrays for an array of `shape`, and the shape of what they pick. */
static int read_rows(Rows *r, PyObject *axis, int nd, const npy_intp *shape, PyObject *const *arrays, Py_ssize_t several, npy_intp *dims, int *rank) {
    const int first = axis_of(axis, nd);
    if (first < 0 || several < 1 || several > MOST_INDEXED || first + several > nd) return 0;
    r->several = (int)several;
    r->before = r->rows = r->after = 1;
    PyArrayObject *lead = (PyArrayObject *)arrays[0];
    for (int k = 0; k < several; k++) {
        if (!places_of(arrays[k], &r->at[k])) return 0;
        PyArrayObject *a = (PyArrayObject *)arrays[k];
        if (PyArray_NDIM(a) != PyArray_NDIM(lead)) return 0;
        for (int d = 0; d < PyArray_NDIM(a); d++)
            if (PyArray_DIM(a, d) != PyArray_DIM(lead, d)) return 0;
        r->sizes[k] = shape[first + k];
        if (!in_range(&r->at[k], -r->sizes[k], r->sizes[k])) return 0;
        r->rows *= r->sizes[k];
    }
    r->count = r->at[0].count;
    const int wide = PyArray_NDIM(lead);
    if (nd - several + wide > MOST_AXES) return 0;
    *rank = 0;
    for (int d = 0; d < first; d++) { r->before *= shape[d]; dims[(*rank)++] = shape[d]; }
    for (int d = 0; d < wide; d++) dims[(*rank)++] = PyArray_DIM(lead, d);
    for (int d = first + (int)several; d < nd; d++) { r->after *= shape[d]; dims[(*rank)++] = shape[d]; }
    return 1;
}

static inline npy_intp row_at(const Rows *r, npy_intp i) {
    npy_intp row = 0;
    for (int k = 0; k < r->several; k++) {
        const npy_intp at = place_at(&r->at[k], i);
        row = row * r->sizes[k] + (at < 0 ? at + r->sizes[k] : at);
    }
    return row;
}

static PyThreadState *begin_many(npy_intp bytes) {
    return bytes > 2 * MANY ? PyEval_SaveThread() : NULL;
}

static void end_many(PyThreadState *saved) {
    if (saved) PyEval_RestoreThread(saved);
}

/* Copy rows of `size` bytes out of x, or into it. */
#define ROW_MOVES(T)                                                                              \\
    static void row_moves_##T(const Rows *r, char *x, char *rows, npy_intp size, int out) {       \\
        for (npy_intp b = 0; b < r->before; b++, x += r->rows * size)                             \\
            for (npy_intp i = 0; i < r->count; i++, rows += size) {                               \\
                char *const there = x + row_at(r, i) * size;                                      \\
                if (sizeof(T) > 1) {                                                              \\
                    if (out) *(T *)rows = *(T *)there;                                            \\
                    else *(T *)there = *(T *)rows;                                                \\
                } else if (out) memcpy(rows, there, size);                                        \\
                else memcpy(there, rows, size);                                                   \\
            }                                                                                     \\
    }
ROW_MOVES(u8) ROW_MOVES(u32) ROW_MOVES(u64)

static void move_rows(const Rows *r, char *x, char *rows, npy_intp unit, int out) {
    const npy_intp size = r->after * unit;
    if (r->before * r->count * size == 0) return;
    PyThreadState *saved = begin_many(r->before * r->count * size);
    (size == 4 ? row_moves_u32 : size == 8 ? row_moves_u64 : row_moves_u8)(r, x, rows, size, out);
    end_many(saved);
}

/* picked(axis, x, *arrays): the rows of x that the arrays name */
static PyObject *picked(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Rows rows;
    npy_intp dims[MOST_AXES];
    int rank;
    PyArrayObject *x = count > 2 ? movable(args[1]) : NULL;
    if (x == NULL || !PyArray_IS_C_CONTIGUOUS(x)) Py_RETURN_NONE;
    if (!read_rows(&rows, args[0], PyArray_NDIM(x), PyArray_DIMS(x), args + 2, count - 2, dims, &rank)) Py_RETURN_NONE;
    PyArrayObject *y = new_rows(x, rank, dims);
    if (y) move_rows(&rows, PyArray_BYTES(x), PyArray_BYTES(y), PyArray_ITEMSIZE(x), 1);
    return (PyObject *)y;
}

/* selected(axis, x, index): the rows at a vector of places, none of which counts from the end */
static PyObject *selected(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Places places;
    PyArrayObject *x = count == 3 ? movable(args[1]) : NULL;
    const int axis = x && PyArray_NDIM(x) ? axis_of(args[0], PyArray_NDIM(x)) : -1;
    if (axis < 0 || !places_of(args[2], &places)) Py_RETURN_NONE;
    if (PyArray_NDIM((PyArrayObject *)args[2]) != 1 || !in_range(&places, 0, PyArray_DIM(x, axis))) Py_RETURN_NONE;
    return picked(self, args, count);
}

/* looked_up(x, index): the rows of a table, likewise, at places of any shape */
static PyObject *looked_up(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Places places;
    PyArrayObject *x = count == 2 ? movable(args[0]) : NULL;
    if (x == NULL || PyArray_NDIM(x) == 0 || !places_of(args[1], &places)) Py_RETURN_NONE;
    if (!in_range(&places, 0, PyArray_DIM(x, 0))) Py_RETURN_NONE;
    PyObject *axis = PyLong_FromLong(0), *given[3] = {axis, args[0], args[1]};
    PyObject *found = axis ? picked(self, given, 3) : NULL;
    Py_XDECREF(axis);
    return found;
}

/* The first byte of what an array shows, and the one after the last. */
static void extent(PyArrayObject *x, const char **low, const char **high) {
    *low = *high = PyArray_BYTES(x);
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        const npy_intp far = PyArray_STRIDE(x, d) * (PyArray_DIM(x, d) - 1);
        if (far < 0) *low += far;
        else *high += far;
    }
    *high += PyArray_ITEMSIZE(x);
}

static int may_overlap(PyArrayObject *a, PyObject *const *others, Py_ssize_t count) {
    const char *low, *high, *from, *to;
    if (PyArray_SIZE(a) == 0) return 0;
    extent(a, &low, &high);
    for (Py_ssize_t k = 0; k < count; k++) {
        if (PyArray_SIZE((PyArrayObject *)others[k]) == 0) continue;
        extent((PyArrayObject *)others[k], &from, &to);
        if (from < high && low < to) return 1;
    }
    return 0;
}

/* Whether an array lies row by row and has this shape. */
static int has_shape(PyObject *given, int nd, const npy_intp *dims, int type) {
    if (!PyArray_CheckExact(given)) return 0;
    PyArrayObject *a = (PyArrayObject *)given;
    if (PyArray_TYPE(a) != type || !PyArray_ISCARRAY_RO(a) || PyArray_NDIM(a) != nd) return 0;
    for (int d = 0; d < nd; d++)
        if (PyArray_DIM(a, d) != dims[d]) return 0;
    return 1;
}
"""

# Sums into places; @L is a letter of the type.
_SUMMING = """
static void add_rows_@L(const Rows *r, @T *x, const @T *rows) {
    for (npy_intp b = 0; b < r->before; b++, x += r->rows * r->after)
        for (npy_intp i = 0; i < r->count; i++, rows += r->after) {
            @T *const there = x + row_at(r, i) * r->after;
            for (npy_intp k = 0; k < r->after; k++) there[k] += rows[k];
        }
}
"""

_CAREFUL = """
/* Note [Sums by place] */
static int add_rows_carefully(const Rows *r, float *x, const float *rows) {
    const npy_intp n = r->before * r->rows * r->after;
    double *sums = calloc(n, sizeof(double));
    if (sums == NULL) return 0;
    double *line = sums;
    for (npy_intp b = 0; b < r->before; b++, line += r->rows * r->after)
        for (npy_intp i = 0; i < r->count; i++, rows += r->after) {
            double *const there = line + row_at(r, i) * r->after;
            for (npy_intp k = 0; k < r->after; k++) there[k] += rows[k];
        }
    for (npy_intp i = 0; i < n; i++) x[i] = (float)(x[i] + sums[i]);
    free(sums);
    return 1;
}

#define OFTEN 16 /* so many to one place, on average, are added up in double */

static int add_rows(const Rows *r, PyArrayObject *x, PyArrayObject *rows) {
    const int type = PyArray_TYPE(x);
    PyThreadState *saved = begin_many(PyArray_NBYTES(rows));
    int done = 1;
    if (type == NPY_DOUBLE) add_rows_d(r, PyArray_DATA(x), PyArray_DATA(rows));
    else if (type == NPY_INT64) add_rows_i(r, PyArray_DATA(x), PyArray_DATA(rows));
    else if (type != NPY_FLOAT) done = 0;
    else if (r->count < OFTEN * r->rows) add_rows_f(r, PyArray_DATA(x), PyArray_DATA(rows));
    else done = add_rows_carefully(r, PyArray_DATA(x), PyArray_DATA(rows));
    end_many(saved);
    return done;
}

/* unpicked(axis, shape, g, *arrays): zeros of that shape, with the rows of g added */
static PyObject *unpicked(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Rows rows;
    npy_intp shape[MOST_AXES], dims[MOST_AXES];
    int rank;
    PyArrayObject *g = count > 3 ? movable(args[2]) : NULL;
    const int nd = g ? ints_of(args[1], shape) : -1;
    if (nd < 0 || !read_rows(&rows, args[0], nd, shape, args + 3, count - 3, dims, &rank)) Py_RETURN_NONE;
    const int type = PyArray_TYPE(g);
    if (!has_shape(args[2], rank, dims, type)) Py_RETURN_NONE;
    if (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_INT64) Py_RETURN_NONE;
    PyArrayObject *y = new_zeros(g, nd, shape);
    if (y && !add_rows(&rows, y, g)) Py_CLEAR(y);
    return y || PyErr_Occurred() ? (PyObject *)y : PyErr_NoMemory();
}

/* put_rows(axis, add, target, value, *arrays): write rows into an array, or add them: True, or None */
static PyObject *put_rows(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Rows rows;
    npy_intp dims[MOST_AXES];
    int rank;
    PyArrayObject *x = count > 4 ? movable(args[2]) : NULL;
    if (x == NULL || !PyArray_ISCARRAY(x)) Py_RETURN_NONE;
    if (!read_rows(&rows, args[0], PyArray_NDIM(x), PyArray_DIMS(x), args + 4, count - 4, dims, &rank)) Py_RETURN_NONE;
    if (!has_shape(args[3], rank, dims, PyArray_TYPE(x))) Py_RETURN_NONE;
    PyArrayObject *value = (PyArrayObject *)args[3];
    if (may_overlap(x, args + 3, count - 3)) Py_RETURN_NONE;
    if (PyObject_IsTrue(args[1])) {
        if (!add_rows(&rows, x, value)) Py_RETURN_NONE;
    } else move_rows(&rows, PyArray_BYTES(x), PyArray_BYTES(value), PyArray_ITEMSIZE(x), 0);
    Py_RETURN_TRUE;
}

/* --- along an axis: x[i][index[i][j]], the index being of the rank of x --- */
typedef struct {
    Places at;
    int nd;
    npy_intp dims[MOST_AXES], x[MOST_AXES], other[MOST_AXES]; /* of the index; strides in bytes */
    npy_intp step;                                            /* of x along the axis */
} Line;

/* `other` are the strides of what is read or written beside x. */
static int read_line(Line *line, PyObject *given, PyArrayObject *x, PyObject *index) {
    const int nd = PyArray_NDIM(x), axis = nd ? axis_of(given, nd) : -1;
    if (axis < 0 || !places_of(index, &line->at)) return 0;
    PyArrayObject *a = (PyArrayObject *)index;
    if (PyArray_NDIM(a) != nd || !in_range(&line->at, 0, PyArray_DIM(x, axis))) return 0;
    line->nd = nd;
    for (int d = 0; d < nd; d++) {
        line->dims[d] = PyArray_DIM(a, d);
        if (d != axis && line->dims[d] > PyArray_DIM(x, d)) return 0;
        line->x[d] = d == axis ? 0 : PyArray_STRIDE(x, d);
    }
    line->step = PyArray_STRIDE(x, axis);
    return 1;
}

/* DO uses `there`, a place in x, and `here`, one in the other array. */
#define ALONG(NAME, T, DO)                                                                        \\
    static void NAME(Line *line, char *x, char *other) {                                          \\
        npy_intp at[MOST_AXES] = {0}, next = 0;                                                   \\
        const int last = line->nd - 1;                                                            \\
        const npy_intp n = line->dims[last];                                                      \\
        for (int d = 0; d <= last; d++)                                                           \\
            if (line->dims[d] == 0) return;                                                       \\
        for (;;) {                                                                                \\
            for (npy_intp j = 0; j < n; j++) {                                                    \\
                T *const there = (T *)(x + place_at(&line->at, next + j) * line->step + j * line->x[last]); \\
                T *const here = (T *)(other + j * line->other[last]);                             \\
                DO;                                                                               \\
            }                                                                                     \\
            next += n;                                                                            \\
            int d = last - 1;                                                                     \\
            for (; d >= 0; d--) {                                                                 \\
                x += line->x[d];                                                                  \\
                other += line->other[d];                                                          \\
                if (++at[d] < line->dims[d]) break;                                               \\
                x -= line->x[d] * line->dims[d];                                                  \\
                other -= line->other[d] * line->dims[d];                                          \\
                at[d] = 0;                                                                        \\
            }                                                                                     \\
            if (d < 0) return;                                                                    \\
        }                                                                                         \\
    }
ALONG(read_u8, u8, *here = *there) ALONG(read_u16, u16, *here = *there) ALONG(read_u32, u32, *here = *there)
ALONG(read_u64, u64, *here = *there) ALONG(read_u128, u128, *here = *there)
ALONG(write_u8, u8, *there = *here) ALONG(write_u16, u16, *there = *here) ALONG(write_u32, u32, *there = *here)
ALONG(write_u64, u64, *there = *here) ALONG(write_u128, u128, *there = *here)
ALONG(add_f, float, *there += *here) ALONG(add_d, double, *there += *here) ALONG(add_i, u64, *there += *here)

/* gathered(axis, x, index) */
static PyObject *gathered(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Line line;
    PyArrayObject *x = count == 3 ? movable(args[1]) : NULL;
    if (x == NULL || !read_line(&line, args[0], x, args[2])) Py_RETURN_NONE;
    PyArrayObject *y = new_rows(x, line.nd, line.dims);
    if (y == NULL) return NULL;
    for (int d = 0; d < line.nd; d++) line.other[d] = PyArray_STRIDE(y, d);
    PyThreadState *saved = begin_many(PyArray_NBYTES(y));
    const npy_intp unit = PyArray_ITEMSIZE(x);
    (unit == 1 ? read_u8 : unit == 2 ? read_u16 : unit == 4 ? read_u32 : unit == 8 ? read_u64 : read_u128)(
        &line, PyArray_BYTES(x), PyArray_BYTES(y));
    end_many(saved);
    return (PyObject *)y;
}

/* put_along(axis, add, target, index, source): write into an array, or add to it: True, or None */
static PyObject *put_along(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Line line;
    PyArrayObject *x = count == 5 ? movable(args[2]) : NULL, *source = count == 5 ? movable(args[4]) : NULL;
    if (!x || !source || !PyArray_ISBEHAVED(x) || !read_line(&line, args[0], x, args[3])) Py_RETURN_NONE;
    if (PyArray_TYPE(source) != PyArray_TYPE(x) || !PyArray_ISNOTSWAPPED(source) || PyArray_NDIM(source) != line.nd) Py_RETURN_NONE;
    for (int d = 0; d < line.nd; d++) {
        if (PyArray_DIM(source, d) != line.dims[d]) Py_RETURN_NONE;
        line.other[d] = PyArray_STRIDE(source, d);
    }
    if (may_overlap(x, args + 3, 2)) Py_RETURN_NONE;
    const int type = PyArray_TYPE(x), add = PyObject_IsTrue(args[1]);
    if (add && type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_INT64) Py_RETURN_NONE;
    const npy_intp n = line.at.count, unit = PyArray_ITEMSIZE(x);
    if (add && type == NPY_FLOAT && n >= OFTEN * PyArray_SIZE(x)) Py_RETURN_NONE;
    PyThreadState *saved = begin_many(n * unit);
    (add ? (type == NPY_FLOAT ? add_f : type == NPY_DOUBLE ? add_d : add_i)
         : unit == 1 ? write_u8 : unit == 2 ? write_u16 : unit == 4 ? write_u32 : unit == 8 ? write_u64 : write_u128)(
        &line, PyArray_BYTES(x), PyArray_BYTES(source));
    end_many(saved);
    Py_RETURN_TRUE;
}
"""

NAMES = (
    "within", "picked", "selected", "looked_up", "unpicked", "put_rows", "gathered", "put_along",
)  # fmt: skip
METHODS = "".join(
    [f'    {{"{n}", (PyCFunction)(void (*)(void)){n}, METH_FASTCALL, NULL}},\n' for n in NAMES]
)


def c_members() -> str:
    """The C of all of it, which stands behind that of `codegen.moves`."""
    sums = [
        _SUMMING.replace("@L", letter).replace("@T", name)
        for letter, name in (("f", "float"), ("d", "double"), ("i", "uint64_t"))
    ]
    return _READING + "".join(sums) + _CAREFUL
