"""Copies of arrays as C: in another order, joined, padded, turned round, repeated, cast.

All of them are one routine, `move`, which copies what one set of strides shows of some memory to
what another set shows of other memory. The functions below it say what these are: `cat` is a move
for each part, `pad` a move into the middle of what was filled, `flip` one with negative strides,
`repeat` one with strides of 0. Parameters come first and arrays last, so that an op's are bound
once. A function gives None for what it is not made for, and the words of `arrays.vocabulary` then
do it over NumPy.
"""

from __future__ import annotations

_MOVE = """
/* --- moves: see rushlight.codegen.moves --- */
#define MOST_AXES 16
typedef struct { int nd; npy_intp dims[MOST_AXES], to[MOST_AXES], from[MOST_AXES]; } Path;

/* Fewer axes that lead the same way: those of size 1 are left out, and two that lie in one piece on
   both sides are one. 0 if there is nothing to move. */
static int simplify(Path *p) {
    int nd = 0;
    for (int d = 0; d < p->nd; d++) {
        if (p->dims[d] == 0) return 0;
        if (p->dims[d] == 1) continue;
        if (nd && p->to[nd - 1] == p->to[d] * p->dims[d] && p->from[nd - 1] == p->from[d] * p->dims[d]) {
            p->dims[nd - 1] *= p->dims[d];
            p->to[nd - 1] = p->to[d];
            p->from[nd - 1] = p->from[d];
            continue;
        }
        p->dims[nd] = p->dims[d];
        p->to[nd] = p->to[d];
        p->from[nd] = p->from[d];
        nd++;
    }
    p->nd = nd;
    return 1;
}

#if defined(__GNUC__)
#define BYTES_OF_ANY __attribute__((may_alias)) /* what is moved is of any type */
#else
#define BYTES_OF_ANY
#endif
typedef struct { uint64_t half[2]; } BYTES_OF_ANY u128;
typedef uint64_t BYTES_OF_ANY u64;
typedef uint32_t BYTES_OF_ANY u32;
typedef uint16_t BYTES_OF_ANY u16;
typedef uint8_t BYTES_OF_ANY u8;

/* One line, and a matrix that lies the other way round on the other side: a square of it at a time,
   of which both sides stay in the nearest cache. */
#define LINES(T)                                                                                  \\
    CLONES static void back_##T(char *restrict to, const char *restrict from, npy_intp n) {        \\
        T *restrict y = (T *)to;                                                                  \\
        const T *restrict x = (const T *)from - (n - 1);                                          \\
        _Pragma("omp simd")                                                                       \\
        for (npy_intp i = 0; i < n; i++) y[i] = x[n - 1 - i];                                     \\
    }                                                                                             \\
    static void line_##T(char *restrict to, npy_intp a, const char *restrict from, npy_intp b, npy_intp n) { \\
        if (a == sizeof(T) && b == 0) {                                                           \\
            const T all = *(const T *)from;                                                       \\
            T *restrict y = (T *)to;                                                              \\
            _Pragma("omp simd")                                                                   \\
            for (npy_intp i = 0; i < n; i++) y[i] = all;                                          \\
        } else if (a == sizeof(T) && b == -(npy_intp)sizeof(T))                                   \\
            back_##T(to, from, n);                                                                \\
        else                                                                                      \\
            for (npy_intp i = 0; i < n; i++, to += a, from += b) *(T *)to = *(const T *)from;     \\
    }                                                                                             \\
    static void turn_##T(char *to, npy_intp a, const char *from, npy_intp b, npy_intp rows, npy_intp n) { \\
        const npy_intp side = 64 / sizeof(T) < 4 ? 4 : 64 / sizeof(T);                            \\
        for (npy_intp i = 0; i < rows; i += side)                                                 \\
            for (npy_intp j = 0; j < n; j += side) {                                              \\
                const npy_intp down = i + side < rows ? i + side : rows, right = j + side < n ? j + side : n; \\
                for (npy_intp k = i; k < down; k++) {                                             \\
                    T *row = (T *)(to + k * a);                                                   \\
                    const char *column = from + k * sizeof(T);                                    \\
                    for (npy_intp m = j; m < right; m++) row[m] = *(const T *)(column + m * b);   \\
                }                                                                                 \\
            }                                                                                     \\
    }
LINES(u8) LINES(u16) LINES(u64) LINES(u128)
#define turn_u32 turn_by_one_u32
LINES(u32)
#undef turn_u32

/* Of 4 bytes, four by four: eight exchanges of halves turn such a square in registers. */
#if defined(__GNUC__) && !defined(__clang__)
static void turn_u32(char *to, npy_intp a, const char *from, npy_intp b, npy_intp rows, npy_intp n) {
    typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));
    const npy_intp down = rows / 4 * 4, right = n / 4 * 4, side = 32;
    const four low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, last = {2, 3, 6, 7};
    for (npy_intp i0 = 0; i0 < down; i0 += side)
        for (npy_intp j0 = 0; j0 < right; j0 += side)
            for (npy_intp i = i0; i < i0 + side && i < down; i += 4)
                for (npy_intp j = j0; j < j0 + side && j < right; j += 4) {
                    const char *x = from + i * 4 + j * b;
                    char *y = to + i * a + j * 4;
                    const four p = *(const four *)x, q = *(const four *)(x + b);
                    const four r = *(const four *)(x + 2 * b), s = *(const four *)(x + 3 * b);
                    const four pq = __builtin_shuffle(p, q, low), rs = __builtin_shuffle(r, s, low);
                    const four pq2 = __builtin_shuffle(p, q, high), rs2 = __builtin_shuffle(r, s, high);
                    *(four *)y = __builtin_shuffle(pq, rs, first);
                    *(four *)(y + a) = __builtin_shuffle(pq, rs, last);
                    *(four *)(y + 2 * a) = __builtin_shuffle(pq2, rs2, first);
                    *(four *)(y + 3 * a) = __builtin_shuffle(pq2, rs2, last);
                }
    turn_by_one_u32(to + right * 4, a, from + right * b, b, rows, n - right);
    turn_by_one_u32(to + down * a, a, from + down * 4, b, rows - down, right);
}
#else
#define turn_u32 turn_by_one_u32
#endif
typedef void (*line_move)(char *, npy_intp, const char *, npy_intp, npy_intp);
typedef void (*turn_move)(char *, npy_intp, const char *, npy_intp, npy_intp, npy_intp);

static line_move line_of(npy_intp unit) {
    return unit == 1 ? line_u8 : unit == 2 ? line_u16 : unit == 4 ? line_u32 : unit == 8 ? line_u64 : unit == 16 ? line_u128 : NULL;
}

static turn_move turn_of(npy_intp unit) {
    return unit == 1 ? turn_u8 : unit == 2 ? turn_u16 : unit == 4 ? turn_u32 : unit == 8 ? turn_u64 : turn_u128;
}

/* Copy elements of `unit` bytes along a path. */
static void move(Path *p, char *to, const char *from, npy_intp unit) {
    npy_intp at[MOST_AXES] = {0};
    if (!simplify(p)) return;
    if (p->nd == 0) { memcpy(to, from, unit); return; }
    const int last = p->nd - 1;
    const npy_intp n = p->dims[last], a = p->to[last], b = p->from[last];
    const int piece = a == unit && b == unit;
    const line_move line = line_of(unit);
    int across = -1; /* an axis that lies in one piece where the elements come from */
    if (!piece && a == unit && n > 3)
        for (int d = 0; d < last; d++)
            if (p->from[d] == unit && p->dims[d] > 3) across = d;
    for (;;) {
        if (piece) memcpy(to, from, n * unit);
        else if (across < 0) line(to, a, from, b, n);
        else turn_of(unit)(to, p->to[across], from, b, p->dims[across], n);
        int d = last - 1;
        for (; d >= 0; d--) {
            if (d == across) continue;
            to += p->to[d];
            from += p->from[d];
            if (++at[d] < p->dims[d]) break;
            to -= p->to[d] * p->dims[d];
            from -= p->from[d] * p->dims[d];
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

typedef struct { Path path; char *to; const char *from; npy_intp unit; int cut; } Moved;

static void move_part(void *given, npy_intp first, npy_intp end) {
    const Moved *all = given;
    Path p = all->path;
    p.dims[all->cut] = end - first;
    move(&p, all->to + first * p.to[all->cut], all->from + first * p.from[all->cut], all->unit);
}

/* Copy along a path, which several threads may share: one of its axes is cut. */
static void move_all(Path *p, char *to, const char *from, npy_intp unit) {
    if (!simplify(p)) return;
    Moved all = {*p, to, from, unit, 0};
    npy_intp size = 1;
    for (int d = 0; d < p->nd; d++) {
        size *= p->dims[d];
        if (p->dims[all.cut] < 32 && p->dims[d] > p->dims[all.cut]) all.cut = d;
    }
    if (p->nd == 0) memcpy(to, from, unit);
    else run_parts(move_part, &all, p->dims[all.cut], all.cut == p->nd - 1 ? 1024 : p->dims[all.cut] < 256 ? 1 : 32, size * unit / 4);
}

/* Copy bytes that lie in one piece. */
static void move_piece(char *to, const char *from, npy_intp bytes) {
    Path p = {1, {bytes}, {1}, {1}};
    move_all(&p, to, from, 1);
}

/* Fill `n` elements with one. */
static void fill_piece(char *to, const void *one, npy_intp unit, npy_intp n) {
    Path p = {1, {n}, {unit}, {0}};
    move_all(&p, to, one, unit);
}

/* An array that can be moved: of NumPy's, whose elements are so many bytes and no more. */
static PyArrayObject *movable(PyObject *x) {
    if (!PyArray_CheckExact(x)) return NULL;
    PyArrayObject *a = (PyArrayObject *)x;
    if (PyArray_NDIM(a) > 8 || !PyArray_ISALIGNED(a) || PyDataType_REFCHK(PyArray_DESCR(a))) return NULL;
    return line_of(PyArray_ITEMSIZE(a)) ? a : NULL;
}

/* A new array of the dtype of `like`, row by row. */
static PyArrayObject *new_rows(PyArrayObject *like, int nd, npy_intp *dims) {
    PyArray_Descr *descr = PyArray_DESCR(like);
    Py_INCREF(descr);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, NULL, NULL, 0, NULL);
}

/* The way from all of `x` to places with the strides `to`. */
static void path_of(Path *p, PyArrayObject *x, const npy_intp *to) {
    p->nd = PyArray_NDIM(x);
    for (int d = 0; d < p->nd; d++) {
        p->dims[d] = PyArray_DIM(x, d);
        p->from[d] = PyArray_STRIDE(x, d);
        p->to[d] = to[d];
    }
}

/* An axis counted from either end; -1 if there is none such. */
static int axis_of(PyObject *given, int nd) {
    const long axis = PyLong_AsLong(given);
    if (axis == -1 && PyErr_Occurred()) { PyErr_Clear(); return -1; }
    return axis < -nd || axis >= nd ? -1 : (int)(axis < 0 ? axis + nd : axis);
}

/* Ints in a tuple: how many; -1 if it holds anything else, or too many. */
static int ints_of(PyObject *given, npy_intp *found) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) > MOST_AXES) return -1;
    const int count = (int)PyTuple_GET_SIZE(given);
    for (int d = 0; d < count; d++) {
        PyObject *const item = PyTuple_GET_ITEM(given, d);
        if (!PyLong_CheckExact(item)) return -1;
        found[d] = PyLong_AsSsize_t(item);
        if (found[d] == -1 && PyErr_Occurred()) { PyErr_Clear(); return -1; }
    }
    return count;
}

/* Whether an array lies in one piece with the first axis innermost, and says so by its strides. */
static int lies_turned(PyArrayObject *x) {
    if (!PyArray_IS_F_CONTIGUOUS(x)) return 0;
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (PyArray_STRIDE(x, d) == 0) return 0;
    return 1;
}

/* copied(x): a copy that lies as `x`, if that lies in one piece */
static PyObject *copied(PyObject *self, PyObject *given) {
    PyArrayObject *x = movable(given);
    if (x == NULL) Py_RETURN_NONE;
    const int rows = PyArray_IS_C_CONTIGUOUS(x);
    if (!rows && !lies_turned(x)) Py_RETURN_NONE;
    PyArray_Descr *descr = PyArray_DESCR(x);
    Py_INCREF(descr);
    PyArrayObject *y = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, descr, PyArray_NDIM(x), PyArray_DIMS(x), NULL, NULL, rows ? 0 : NPY_ARRAY_F_CONTIGUOUS, NULL);
    if (y == NULL) return NULL;
    move_piece(PyArray_BYTES(y), PyArray_BYTES(x), PyArray_NBYTES(x));
    return (PyObject *)y;
}

/* in_new_rows(x): a copy row by row */
static PyObject *in_new_rows(PyObject *self, PyObject *given) {
    PyArrayObject *x = movable(given);
    if (x == NULL) Py_RETURN_NONE;
    PyArrayObject *y = new_rows(x, PyArray_NDIM(x), PyArray_DIMS(x));
    if (y == NULL) return NULL;
    Path path;
    path_of(&path, x, PyArray_STRIDES(y));
    move_all(&path, PyArray_BYTES(y), PyArray_BYTES(x), PyArray_ITEMSIZE(x));
    return (PyObject *)y;
}

static int same_sizes(PyArrayObject *a, PyArrayObject *b, int but) {
    if (PyArray_NDIM(a) != PyArray_NDIM(b) || PyArray_TYPE(a) != PyArray_TYPE(b)) return 0;
    if (PyArray_ITEMSIZE(a) != PyArray_ITEMSIZE(b) || PyArray_ISBYTESWAPPED(a) || PyArray_ISBYTESWAPPED(b)) return 0;
    for (int d = 0; d < PyArray_NDIM(a); d++)
        if (d != but && PyArray_DIM(a, d) != PyArray_DIM(b, d)) return 0;
    return 1;
}

/* joined(axis, *xs): arrays one after the other */
static PyObject *joined(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[NPY_MAXDIMS], all = 0;
    PyArrayObject *first = count > 1 ? movable(args[1]) : NULL;
    const int axis = first ? axis_of(args[0], PyArray_NDIM(first)) : -1;
    if (axis < 0) Py_RETURN_NONE;
    for (Py_ssize_t k = 1; k < count; k++) {
        if (!movable(args[k]) || !same_sizes(first, (PyArrayObject *)args[k], axis)) Py_RETURN_NONE;
        all += PyArray_DIM((PyArrayObject *)args[k], axis);
    }
    for (int d = 0; d < PyArray_NDIM(first); d++) dims[d] = d == axis ? all : PyArray_DIM(first, d);
    PyArrayObject *y = new_rows(first, PyArray_NDIM(first), dims);
    if (y == NULL) return NULL;
    char *to = PyArray_BYTES(y);
    for (Py_ssize_t k = 1; k < count; k++) {
        PyArrayObject *x = (PyArrayObject *)args[k];
        Path path;
        path_of(&path, x, PyArray_STRIDES(y));
        move_all(&path, to, PyArray_BYTES(x), PyArray_ITEMSIZE(x));
        to += PyArray_STRIDE(y, axis) * PyArray_DIM(x, axis);
    }
    return (PyObject *)y;
}

/* stacked(axis, *xs): arrays of one shape side by side along a new axis, which is negative */
static PyObject *stacked(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    PyArrayObject *first = count > 1 ? movable(args[1]) : NULL;
    const int nd = first ? PyArray_NDIM(first) : 0, axis = first ? axis_of(args[0], nd + 1) : -1;
    if (axis < 0 || nd > 7) Py_RETURN_NONE;
    for (Py_ssize_t k = 1; k < count; k++)
        if (!movable(args[k]) || !same_sizes(first, (PyArrayObject *)args[k], -1)) Py_RETURN_NONE;
    for (int d = 0; d <= nd; d++) dims[d] = d == axis ? count - 1 : PyArray_DIM(first, d < axis ? d : d - 1);
    PyArrayObject *y = new_rows(first, nd + 1, dims);
    if (y == NULL) return NULL;
    for (int d = 0; d < nd; d++) steps[d] = PyArray_STRIDE(y, d < axis ? d : d + 1);
    char *to = PyArray_BYTES(y);
    for (Py_ssize_t k = 1; k < count; k++, to += PyArray_STRIDE(y, axis)) {
        PyArrayObject *x = (PyArrayObject *)args[k];
        Path path;
        path_of(&path, x, steps);
        move_all(&path, to, PyArray_BYTES(x), PyArray_ITEMSIZE(x));
    }
    return (PyObject *)y;
}

/* Fill new memory with a number; 0 if it is not known how to write it in that dtype. */
static int fill_with(PyArrayObject *y, PyObject *value) {
    const npy_intp n = PyArray_SIZE(y);
    const int type = PyArray_TYPE(y);
    union { float f; double d; int64_t i; } one;
    const int whole = PyLong_CheckExact(value);
    if (!whole && !PyFloat_CheckExact(value)) return 0;
    const double number = whole ? PyLong_AsDouble(value) : PyFloat_AS_DOUBLE(value);
    if (PyErr_Occurred()) { PyErr_Clear(); return 0; }
    if (number == 0 && !signbit(number)) {
        one.i = 0;
        fill_piece(PyArray_BYTES(y), &one, 1, PyArray_NBYTES(y));
        return 1;
    }
    if (type == NPY_FLOAT) {
        one.f = (float)number;
        fill_piece(PyArray_BYTES(y), &one, 4, n);
    } else if (type == NPY_DOUBLE) {
        one.d = number;
        fill_piece(PyArray_BYTES(y), &one, 8, n);
    } else if (type == NPY_INT64 && whole) {
        one.i = PyLong_AsLongLong(value);
        if (PyErr_Occurred()) { PyErr_Clear(); return 0; }
        fill_piece(PyArray_BYTES(y), &one, 8, n);
    } else return 0;
    return 1;
}

/* Zeros of the dtype of `like`, row by row. What `calloc` gives was used before, as a rule, and is
   filled by one thread. */
static PyArrayObject *new_zeros(PyArrayObject *like, int nd, npy_intp *dims) {
    PyArray_Descr *descr = PyArray_DESCR(like);
    if (threads == 1) {
        Py_INCREF(descr);
        return (PyArrayObject *)PyArray_Zeros(nd, dims, descr, 0);
    }
    PyArrayObject *y = new_rows(like, nd, dims);
    const char zero = 0;
    if (y) fill_piece(PyArray_BYTES(y), &zero, 1, PyArray_NBYTES(y));
    return y;
}

/* embedded(shape, axis, start, step, keeps, g): zeros of a shape, with `g` in the places of a slice of
   one axis; in those of one index, if `g` has no such axis (`keeps` is false) */
static PyObject *embedded(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp shape[MOST_AXES], to[MOST_AXES];
    PyArrayObject *g = count == 6 ? movable(args[5]) : NULL;
    const int nd = g ? ints_of(args[0], shape) : -1, keeps = g && args[4] == Py_True;
    const int axis = nd > 0 ? axis_of(args[1], nd) : -1;
    if (axis < 0 || PyArray_NDIM(g) != nd - !keeps || PyArray_ISBYTESWAPPED(g)) Py_RETURN_NONE;
    const npy_intp start = PyLong_AsSsize_t(args[2]), step = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred()) { PyErr_Clear(); Py_RETURN_NONE; }
    const npy_intp parts = keeps ? PyArray_DIM(g, axis) : 1;
    if (start < 0 || step < 1 || (parts && (step > NPY_MAX_INTP / parts || start + (parts - 1) * step >= shape[axis]))) Py_RETURN_NONE;
    for (int d = 0, e = 0; d < nd; d++) {
        if (d == axis && !keeps) continue;
        if (d != axis && PyArray_DIM(g, e) != shape[d]) Py_RETURN_NONE;
        e++;
    }
    PyArrayObject *y = new_zeros(g, nd, shape);
    if (y == NULL) return NULL;
    for (int d = 0, e = 0; d < nd; d++)
        if (d != axis) to[e++] = PyArray_STRIDE(y, d);
        else if (keeps) to[e++] = PyArray_STRIDE(y, d) * step;
    Path path;
    path_of(&path, g, to);
    move_all(&path, PyArray_BYTES(y) + start * PyArray_STRIDE(y, axis), PyArray_BYTES(g), PyArray_ITEMSIZE(g));
    return (PyObject *)y;
}

/* padded(widths, value, x): so many before and after, from the last axis on; negative ones cut off */
static PyObject *padded(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp widths[MOST_AXES], dims[NPY_MAXDIMS];
    PyArrayObject *x = count == 3 ? movable(args[2]) : NULL;
    const int given = x ? ints_of(args[0], widths) : -1;
    if (given < 0 || given % 2 || given / 2 > PyArray_NDIM(x) || PyArray_ISBYTESWAPPED(x)) Py_RETURN_NONE;
    const int nd = PyArray_NDIM(x);
    for (int d = 0; d < nd; d++) {
        const int k = 2 * (nd - 1 - d);
        dims[d] = PyArray_DIM(x, d) + (k < given ? widths[k] + widths[k + 1] : 0);
        if (dims[d] < 0) Py_RETURN_NONE;
    }
    PyArrayObject *y = new_rows(x, nd, dims);
    if (y == NULL) return NULL;
    int more = 0;
    for (int k = 0; k < given; k++) more |= widths[k] > 0;
    if (more && !fill_with(y, args[1])) {
        Py_DECREF(y);
        Py_RETURN_NONE;
    }
    Path path;
    path_of(&path, x, PyArray_STRIDES(y));
    char *to = PyArray_BYTES(y);
    const char *from = PyArray_BYTES(x);
    for (int d = 0; d < nd; d++) {
        const int k = 2 * (nd - 1 - d);
        if (k >= given) continue;
        if (widths[k] > 0) to += widths[k] * path.to[d];
        else { from -= widths[k] * path.from[d]; path.dims[d] += widths[k]; }
        if (widths[k + 1] < 0) path.dims[d] += widths[k + 1];
        if (path.dims[d] <= 0) return (PyObject *)y; /* nothing is left of it */
    }
    move_all(&path, to, from, PyArray_ITEMSIZE(x));
    return (PyObject *)y;
}

/* flipped(axes, x): the order along axes turned round */
static PyObject *flipped(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyArrayObject *x = count == 2 ? movable(args[1]) : NULL;
    if (x == NULL || !PyArray_IS_C_CONTIGUOUS(x) || !PyTuple_Check(args[0])) Py_RETURN_NONE;
    int turned[MOST_AXES] = {0};
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args[0]); k++) {
        const int axis = axis_of(PyTuple_GET_ITEM(args[0], k), PyArray_NDIM(x));
        if (axis < 0 || turned[axis]++) Py_RETURN_NONE;
    }
    PyArrayObject *y = new_rows(x, PyArray_NDIM(x), PyArray_DIMS(x));
    if (y == NULL || PyArray_SIZE(x) == 0) return (PyObject *)y;
    Path path;
    path_of(&path, x, PyArray_STRIDES(y));
    const char *from = PyArray_BYTES(x);
    for (int d = 0; d < path.nd; d++)
        if (turned[d]) {
            from += (path.dims[d] - 1) * path.from[d];
            path.from[d] = -path.from[d];
        }
    move_all(&path, PyArray_BYTES(y), from, PyArray_ITEMSIZE(x));
    return (PyObject *)y;
}

/* rolled(shifts, axes, x): moved along axes, round the end; without axes, of the flat array. Along
   one axis that is two moves; along several, two for each part. */
static PyObject *rolled(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp shifts[MOST_AXES], by[MOST_AXES] = {0}, size;
    PyArrayObject *x = count == 3 ? movable(args[2]) : NULL;
    if (x == NULL || !PyArray_IS_C_CONTIGUOUS(x) || !PyTuple_Check(args[1])) Py_RETURN_NONE;
    const int given = ints_of(args[0], shifts), nd = PyArray_NDIM(x);
    const Py_ssize_t axes = PyTuple_GET_SIZE(args[1]);
    if (given < 1 || (axes ? axes != given : given != 1)) Py_RETURN_NONE;
    PyArrayObject *y = new_rows(x, nd, PyArray_DIMS(x));
    if (y == NULL || (size = PyArray_SIZE(x)) == 0) return (PyObject *)y;
    Path whole;
    path_of(&whole, x, PyArray_STRIDES(y));
    const npy_intp unit = PyArray_ITEMSIZE(x);
    if (axes == 0) {
        whole.nd = 1;
        whole.dims[0] = size;
        whole.to[0] = whole.from[0] = unit;
        by[0] = shifts[0] % size;
    }
    for (Py_ssize_t k = 0; k < axes; k++) {
        const int axis = axis_of(PyTuple_GET_ITEM(args[1], k), nd);
        if (axis < 0) { Py_DECREF(y); Py_RETURN_NONE; }
        by[axis] = (by[axis] + shifts[k] % whole.dims[axis]) % whole.dims[axis];
    }
    int moved[MOST_AXES], several = 0;
    for (int d = 0; d < whole.nd; d++) {
        if (by[d] < 0) by[d] += whole.dims[d];
        if (by[d]) moved[several++] = d;
    }
    for (int part = 0; part < 1 << several; part++) {
        Path path = whole;
        char *to = PyArray_BYTES(y);
        const char *from = PyArray_BYTES(x);
        for (int k = 0; k < several; k++) {
            const int d = moved[k];
            const npy_intp stay = whole.dims[d] - by[d]; /* so many do not go round the end */
            if (part >> k & 1) { from += stay * path.from[d]; path.dims[d] = by[d]; }
            else { to += by[d] * path.to[d]; path.dims[d] = stay; }
        }
        move_all(&path, to, from, unit);
    }
    return (PyObject *)y;
}

/* tiled(repeats, x): each axis so often; new axes in front */
static PyObject *tiled(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp repeats[MOST_AXES], dims[NPY_MAXDIMS];
    PyArrayObject *x = count == 2 ? movable(args[1]) : NULL;
    const int nd = x ? ints_of(args[0], repeats) : -1;
    if (nd < 0 || nd > 8 || nd < PyArray_NDIM(x)) Py_RETURN_NONE;
    const int front = nd - PyArray_NDIM(x);
    for (int d = 0; d < nd; d++) {
        if (repeats[d] < 0) Py_RETURN_NONE;
        dims[d] = repeats[d] * (d < front ? 1 : PyArray_DIM(x, d - front));
    }
    PyArrayObject *y = new_rows(x, nd, dims);
    if (y == NULL) return NULL;
    Path path;
    path.nd = 2 * nd;
    for (int d = 0; d < nd; d++) {
        const npy_intp n = d < front ? 1 : PyArray_DIM(x, d - front);
        path.dims[2 * d] = repeats[d];
        path.from[2 * d] = 0;
        path.to[2 * d] = n * PyArray_STRIDE(y, d);
        path.dims[2 * d + 1] = n;
        path.from[2 * d + 1] = d < front ? 0 : PyArray_STRIDE(x, d - front);
        path.to[2 * d + 1] = PyArray_STRIDE(y, d);
    }
    move_all(&path, PyArray_BYTES(y), PyArray_BYTES(x), PyArray_ITEMSIZE(x));
    return (PyObject *)y;
}

/* triangle(k, lower, x): zeros above (or below) a diagonal of the last two axes */
static PyObject *triangle(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyArrayObject *x = count == 3 ? movable(args[2]) : NULL;
    if (x == NULL || !PyArray_IS_C_CONTIGUOUS(x) || PyArray_NDIM(x) < 2) Py_RETURN_NONE;
    const npy_intp k = PyLong_AsSsize_t(args[0]);
    if (k == -1 && PyErr_Occurred()) { PyErr_Clear(); Py_RETURN_NONE; }
    const int lower = PyObject_IsTrue(args[1]), nd = PyArray_NDIM(x);
    PyArrayObject *y = new_rows(x, nd, PyArray_DIMS(x));
    if (y == NULL) return NULL;
    const npy_intp rows = PyArray_DIM(x, nd - 2), n = PyArray_DIM(x, nd - 1), unit = PyArray_ITEMSIZE(x);
    const npy_intp all = PyArray_SIZE(x) ? PyArray_SIZE(x) / n : 0;
    const char *from = PyArray_BYTES(x);
    char *to = PyArray_BYTES(y);
    PyThreadState *saved = PyArray_SIZE(x) > MANY ? PyEval_SaveThread() : NULL;
    for (npy_intp r = 0; r < all; r++, from += n * unit, to += n * unit) {
        npy_intp cut = k > n ? n : k < -rows ? -rows : k; /* columns before it are on the lower side */
        cut += r % rows + (lower ? 1 : 0);
        cut = cut < 0 ? 0 : cut > n ? n : cut;
        if (lower) { memcpy(to, from, cut * unit); memset(to + cut * unit, 0, (n - cut) * unit); }
        else { memset(to, 0, cut * unit); memcpy(to + cut * unit, from + cut * unit, (n - cut) * unit); }
    }
    if (saved) PyEval_RestoreThread(saved);
    return (PyObject *)y;
}

/* same(x): the gradient of a copy */
static PyObject *same(PyObject *self, PyObject *given) {
    if (!PyArray_CheckExact(given)) Py_RETURN_NONE;
    Py_INCREF(given);
    return given;
}
"""

# Casts that mean the same for all numbers, whatever the processor: to floats, between integers, and
# to bool. What is no number of the other type (NaN as an integer) is left to NumPy, but for the
# signed ones of 32 and 64 bits.
_TYPES = {
    "BOOL": "npy_bool", "UINT8": "npy_uint8", "INT32": "npy_int32", "INT64": "npy_int64",
    "FLOAT": "float", "DOUBLE": "double",
}  # fmt: skip
_OFTEN = (("FLOAT", "DOUBLE"), ("DOUBLE", "FLOAT"), ("BOOL", "FLOAT"))  # for each processor
_FLOATS = ("FLOAT", "DOUBLE")

_CAST = """
@CLONES static void cast_@A_@B(const void *from, void *to, npy_intp n) {
    const @S *x = from;
    @T *y = to;
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) y[i] = @X;
}
"""

# 16 bits: round to nearest, ties to even; a NaN stays one, with what fits of its bits.
_HALVES = """
static inline uint16_t half_of(float x) {
    union { float f; uint32_t i; } u, small;
    u.f = x;
    const uint32_t sign = u.i & 0x80000000u, bits = u.i ^ sign;
    small.i = bits;
    small.f += 0.5f; /* below the normal numbers: the sum rounds to their spacing */
    const uint32_t below = small.i - 0x3f000000u;
    const uint32_t normal = (bits + 0xc8000fffu + (bits >> 13 & 1)) >> 13;
    const uint32_t rest = bits >> 13 & 0x3ff, nan = 0x7c00u | rest | (rest == 0);
    const uint32_t large = bits > 0x7f800000u ? nan : 0x7c00u;
    const uint32_t found = bits >= 0x47800000u ? large : bits < 0x38800000u ? below : normal;
    return (uint16_t)(found | sign >> 16);
}

static inline float float_of(uint16_t h) {
    union { float f; uint32_t i; } u, low;
    const uint32_t shown = (uint32_t)(h & 0x7fff) << 13;
    u.i = shown + 0x38000000u;
    low.i = shown + 0x38800000u;
    low.f -= 0x1p-14f; /* below the normal numbers */
    const uint32_t wide = shown >= 0x0f800000u ? shown + 0x70000000u : u.i;
    u.i = (shown < 0x00800000u ? low.i : wide) | (uint32_t)(h & 0x8000) << 16;
    return u.f;
}

static inline uint16_t bfloat_of(float x) {
    union { float f; uint32_t i; } u;
    u.f = x;
    const uint32_t nan = (u.i >> 16 & 0x8000) | 0x7fc0, near = (u.i + 0x7fff + (u.i >> 16 & 1)) >> 16;
    return (uint16_t)((u.i & 0x7fffffff) > 0x7f800000u ? nan : near);
}

static inline float float_of_bfloat(uint16_t h) {
    union { float f; uint32_t i; } u;
    u.i = (uint32_t)h << 16;
    return u.f;
}

/* Processors with AVX2 have instructions for float16. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
__attribute__((target("avx2,f16c"))) static void quick_HALF_FLOAT(const void *from, void *to, npy_intp n) {
    const uint16_t *x = from;
    float *y = to;
    npy_intp i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    for (; i < n; i++) y[i] = _cvtsh_ss(x[i]);
}

__attribute__((target("avx2,f16c"))) static void quick_FLOAT_HALF(const void *from, void *to, npy_intp n) {
    const float *x = from;
    uint16_t *y = to;
    npy_intp i = 0;
    for (; i + 8 <= n; i += 8) _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
    for (; i < n; i++) y[i] = _cvtss_sh(x[i], 0);
}
#endif

/* bfloat16 is no type of NumPy's own: what number it has is known when ml_dtypes is there. */
static int bfloat_type = -1;
static PyObject *know_bfloat(PyObject *self, PyObject *number) {
    bfloat_type = (int)PyLong_AsLong(number);
    if (bfloat_type == -1 && PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}
"""

_CASTS = """
typedef void (*cast_loop)(const void *, void *, npy_intp);
static cast_loop cast_of(int from, int to) {
    X86(if (processor && from == NPY_HALF && to == NPY_FLOAT) return quick_HALF_FLOAT;)
    X86(if (processor && from == NPY_FLOAT && to == NPY_HALF) return quick_FLOAT_HALF;)
@CASES
    return NULL;
}

typedef struct { cast_loop loop; const char *from; char *to; npy_intp unit, made; } Cast;
static void cast_part(void *given, npy_intp first, npy_intp end) {
    const Cast *all = given;
    all->loop(all->from + first * all->unit, all->to + first * all->made, end - first);
}

/* recast(type, x): the same numbers in another dtype, of an array in one piece */
static PyObject *recast(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyArrayObject *x = count == 2 ? movable(args[1]) : NULL;
    if (x == NULL || PyArray_ISBYTESWAPPED(x)) Py_RETURN_NONE;
    const int rows = PyArray_IS_C_CONTIGUOUS(x);
    const long type = PyLong_AsLong(args[0]);
    if (type == -1 && PyErr_Occurred()) return NULL;
    const cast_loop loop = cast_of(PyArray_TYPE(x), (int)type);
    if (loop == NULL || (!rows && !lies_turned(x))) Py_RETURN_NONE;
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(PyArray_NDIM(x), PyArray_DIMS(x), (int)type, !rows);
    if (y == NULL) return NULL;
    Cast all = {loop, PyArray_BYTES(x), PyArray_BYTES(y), PyArray_ITEMSIZE(x), PyArray_ITEMSIZE(y)};
    run_parts(cast_part, &all, PyArray_SIZE(x), 1024, PyArray_SIZE(x));
    return (PyObject *)y;
}
"""

_ONE = ("copied", "in_new_rows", "same", "know_bfloat")
_MANY = (
    "joined", "stacked", "embedded", "padded", "flipped", "rolled", "tiled", "triangle", "recast",
)  # fmt: skip
METHODS = "".join(
    [f'    {{"{n}", (PyCFunction){n}, METH_O, NULL}},\n' for n in _ONE]
    + [f'    {{"{n}", (PyCFunction)(void (*)(void)){n}, METH_FASTCALL, NULL}},\n' for n in _MANY]
)


def _casts() -> str:
    loops, cases = [], []
    for a, source in _TYPES.items():
        for b, target in _TYPES.items():
            if a == b or (a in _FLOATS and b not in (*_FLOATS, "BOOL", "INT32", "INT64")):
                continue
            value = "x[i] != 0" if b == "BOOL" else f"({target})x[i]"
            text = _CAST.replace("@CLONES ", "CLONES " if (a, b) in _OFTEN else "")
            text = text.replace("@A", a).replace("@B", b).replace("@S", source)
            loops.append(text.replace("@T", target).replace("@X", value))
            cases.append(f"    if (from == NPY_{a} && to == NPY_{b}) return cast_{a}_{b};")
    for a, b, source, target, value in (
        ("FLOAT", "HALF", "float", "npy_half", "half_of(x[i])"),
        ("HALF", "FLOAT", "npy_half", "float", "float_of(x[i])"),
        ("FLOAT", "BFLOAT", "float", "uint16_t", "bfloat_of(x[i])"),
        ("BFLOAT", "FLOAT", "uint16_t", "float", "float_of_bfloat(x[i])"),
    ):
        text = _CAST.replace("@CLONES", "CLONES").replace("@A", a).replace("@B", b)
        loops.append(text.replace("@S", source).replace("@T", target).replace("@X", value))
        ends = [
            f"{n} == {'bfloat_type' if t == 'BFLOAT' else f'NPY_{t}'}"
            for n, t in (("from", a), ("to", b))
        ]
        cases.append(f"    if ({' && '.join(ends)}) return cast_{a}_{b};")
    return _HALVES + "".join(loops) + _CASTS.replace("@CASES", "\n".join(cases))


def c_moves() -> str:
    """The C of all of it."""
    return _MOVE + _casts()
