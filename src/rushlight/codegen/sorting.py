"""Along an axis as C: sorting, the first k, the largest with its place; and masks.

Note [Keys]
    A number becomes a key, an unsigned integer that is larger where the number is: the bits of a
    float with the sign turned round, all of them for negative ones. NaN has the largest key, and
    both zeros have one. For the descending order the key is inverted. Elements with equal keys stay
    in their order, since the place follows the key in the comparison: in one word for float32,
    beside it for wider types.

    Few are sorted by insertion, many by the digits of their keys (each a byte, the lowest first).
    The first k of many are kept in a short sorted list while all go by.
"""

from __future__ import annotations

_KEYS = """
/* --- order: see rushlight.codegen.sorting --- */
static inline uint32_t key_f(float x) {
    union { float f; uint32_t i; } u;
    u.f = x == 0 ? 0 : x;
    return x != x ? 0xffffffffu : u.i ^ ((uint32_t)((int32_t)u.i >> 31) | 0x80000000u);
}

static inline uint64_t key_d(double x) {
    union { double f; uint64_t i; } u;
    u.f = x == 0 ? 0 : x;
    return x != x ? ~0ull : u.i ^ ((uint64_t)((int64_t)u.i >> 63) | 0x8000000000000000ull);
}

static inline uint64_t key_i(int64_t x) { return (uint64_t)x ^ 0x8000000000000000ull; }

typedef uint64_t narrow_entry; /* the key, and below it the place */
typedef struct { uint64_t key; npy_intp at; } wide_entry;
static inline int before_narrow(narrow_entry a, narrow_entry b) { return a < b; }
static inline int before_wide(wide_entry a, wide_entry b) {
    return a.key < b.key || (a.key == b.key && a.at < b.at);
}
static inline unsigned digit_narrow(narrow_entry a, int k) { return a >> (32 + 8 * k) & 255; }
static inline unsigned digit_wide(wide_entry a, int k) { return a.key >> (8 * k) & 255; }
"""

# For entries of each kind; @K is narrow or wide, @D how many digits a key has.
_SORT = """
static void insertion_@K(@K_entry *e, npy_intp n) {
    for (npy_intp i = 1; i < n; i++) {
        const @K_entry one = e[i];
        npy_intp j = i;
        for (; j > 0 && before_@K(one, e[j - 1]); j--) e[j] = e[j - 1];
        e[j] = one;
    }
}

/* Sort n entries, with room for as many more behind them. */
static void sort_@K(@K_entry *e, npy_intp n) {
    npy_intp counts[@D][256];
    @K_entry *from = e, *to = e + n;
    if (n <= 40) {
        insertion_@K(e, n);
        return;
    }
    memset(counts, 0, sizeof counts);
    for (npy_intp i = 0; i < n; i++)
        for (int k = 0; k < @D; k++) counts[k][digit_@K(e[i], k)]++;
    for (int k = 0; k < @D; k++) {
        npy_intp *const count = counts[k], sum = 0;
        if (count[digit_@K(e[0], k)] == n) continue; /* all have the same */
        for (int d = 0; d < 256; d++) {
            const npy_intp here = count[d];
            count[d] = sum;
            sum += here;
        }
        for (npy_intp i = 0; i < n; i++) to[count[digit_@K(from[i], k)]++] = from[i];
        @K_entry *const other = from;
        from = to;
        to = other;
    }
    if (from != e) memcpy(e, from, n * sizeof *e);
}

/* The first k of n in order, at the front. */
static void first_@K(@K_entry *e, npy_intp n, npy_intp k) {
    if (k > 32 || 4 * k > n) {
        sort_@K(e, n);
        return;
    }
    insertion_@K(e, k);
    for (npy_intp i = k; i < n && k; i++) {
        const @K_entry one = e[i];
        if (!before_@K(one, e[k - 1])) continue;
        npy_intp j = k - 1;
        for (; j > 0 && before_@K(one, e[j - 1]); j--) e[j] = e[j - 1];
        e[j] = one;
    }
}
"""

# For each type: @L its letter, @T its name, @E an entry of key q and place i, @A the place of one.
_RANK = """
static void rank_@L(const char *x, npy_intp step, npy_intp n, npy_intp k, int down, char *values,
                    char *places, npy_intp value_step, npy_intp place_step, void *room)
{
    @K_entry *const e = room;
    for (npy_intp i = 0; i < n; i++) {
        const @Q key = key_@L(*(const @T *)(x + i * step)), q = down ? (@Q)~key : key;
        e[i] = @E;
    }
    first_@K(e, n, k);
    for (npy_intp i = 0; i < k; i++) {
        const npy_intp at = @A;
        *(int64_t *)(places + i * place_step) = at;
        if (values) *(@T *)(values + i * value_step) = *(const @T *)(x + at * step);
    }
}

/* The largest (or smallest) number of a line that lies in one piece, or whether there is a NaN. */
CLONES static int best_@L(const @T *x, npy_intp n, int most, @T *found) {
    @T best = x[0];
    int nan = 0;
    if (most) {
#pragma omp simd reduction(max:best) reduction(|:nan)
        for (npy_intp i = 0; i < n; i++) { best = x[i] > best ? x[i] : best; nan |= x[i] != x[i]; }
    } else {
#pragma omp simd reduction(min:best) reduction(|:nan)
        for (npy_intp i = 0; i < n; i++) { best = x[i] < best ? x[i] : best; nan |= x[i] != x[i]; }
    }
    *found = best;
    return !nan;
}

/* One more row: values that it exceeds are replaced, and their places. */
CLONES static void surpass_@L(const void *from, npy_intp n, int most, int64_t row, void *best,
                              void *where)
{
    const @T *x = from;
    @T *values = best;
    int64_t *places = where;
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        const @T one = x[i], old = values[i];
        const int more = (most ? !(one <= old) : !(one >= old)) & (old == old);
        values[i] = more ? one : old;
        places[i] = more ? row : places[i];
    }
}

/* The largest (or smallest) and its place; the first NaN is both. */
static void extreme_@L(const char *x, npy_intp step, npy_intp n, int most, char *value, char *place)
{
    @T best = *(const @T *)x;
    npy_intp at = 0;
    if (step == sizeof(@T) && n > 16 && best_@L((const @T *)x, n, most, &best)) {
        while (((const @T *)x)[at] != best) at++;
        *(@T *)value = ((const @T *)x)[at];
        *(int64_t *)place = at;
        return;
    }
    best = *(const @T *)x;
    for (npy_intp i = 1; i < n && best == best; i++) {
        const @T one = *(const @T *)(x + i * step);
        if (most ? !(one <= best) : !(one >= best)) {
            best = one;
            at = i;
        }
    }
    *(@T *)value = best;
    *(int64_t *)place = at;
}
"""

_CALLS = """
/* The lines of an array along an axis: where each begins, in it and in two others. */
typedef struct { int nd; npy_intp dims[8], at[8]; char *where[3]; npy_intp steps[3][8]; } SortLines;

static int next_sort_line(SortLines *l) {
    for (int d = l->nd - 1; d >= 0; d--) {
        for (int k = 0; k < 3; k++) l->where[k] += l->steps[k][d];
        if (++l->at[d] < l->dims[d]) return 1;
        for (int k = 0; k < 3; k++) l->where[k] -= l->steps[k][d] * l->dims[d];
        l->at[d] = 0;
    }
    return 0;
}

static void sort_lines_of(SortLines *l, int axis, PyArrayObject *x, PyArrayObject *y,
                          PyArrayObject *z) {
    PyArrayObject *const all[3] = {x, y, z};
    l->nd = 0;
    for (int k = 0; k < 3; k++) l->where[k] = all[k] ? PyArray_BYTES(all[k]) : NULL;
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        if (d == axis) continue;
        l->dims[l->nd] = PyArray_DIM(x, d);
        l->at[l->nd] = 0;
        for (int k = 0; k < 3; k++) l->steps[k][l->nd] = all[k] ? PyArray_STRIDE(all[k], d) : 0;
        l->nd++;
    }
}

/* The line of this number; how many there are is the product of `dims`. */
static void seek_sort_line(SortLines *l, npy_intp number) {
    for (int d = l->nd - 1; d >= 0; d--) {
        l->at[d] = number % l->dims[d];
        number /= l->dims[d];
        for (int k = 0; k < 3; k++) l->where[k] += l->at[d] * l->steps[k][d];
    }
}

/* What is done along each line, by several threads where there is much: see Note [Parts]. */
typedef struct {
    SortLines lines;
    int type, down; /* or `most` */
    npy_intp n, k, step, value_step, place_step;
    int no_memory;
} SortWork;

static void rank_lines(void *given, npy_intp from, npy_intp to) {
    SortWork *work = given;
    SortLines lines = work->lines;
    void *room = malloc(2 * (work->n + 1) * (work->type == NPY_FLOAT ? sizeof(narrow_entry) : sizeof(wide_entry)));
    if (room == NULL) {
        __atomic_store_n(&work->no_memory, 1, __ATOMIC_RELAXED);
        return;
    }
    seek_sort_line(&lines, from);
    for (; from < to; from++, next_sort_line(&lines))
        (work->type == NPY_FLOAT ? rank_f : work->type == NPY_DOUBLE ? rank_d : rank_i)(
            lines.where[0], work->step, work->n, work->k, work->down, lines.where[1], lines.where[2], work->value_step,
            work->place_step, room);
    free(room);
}

static void extremes_of_lines(void *given, npy_intp from, npy_intp to) {
    const SortWork *work = given;
    SortLines lines = work->lines;
    char *value = lines.where[1] + from * work->value_step, *place = lines.where[2] + from * 8;
    seek_sort_line(&lines, from);
    for (; from < to; from++, next_sort_line(&lines), value += work->value_step, place += 8)
        (work->type == NPY_FLOAT ? extreme_f : work->type == NPY_DOUBLE ? extreme_d : extreme_i)(
            lines.where[0], work->step, work->n, work->down, value, place);
}

/* ranked(axis, down, k, both, x): the places of the first k in order (k < 0: of all), and with
   `both` the values before them */
static PyObject *ranked(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[8];
    PyArrayObject *x = count == 5 ? movable(args[4]) : NULL;
    const int axis = x && PyArray_NDIM(x) ? axis_of(args[0], PyArray_NDIM(x)) : -1;
    if (axis < 0 || PyArray_ISBYTESWAPPED(x) || !PyArray_IS_C_CONTIGUOUS(x)) Py_RETURN_NONE;
    const int down = PyObject_IsTrue(args[1]), both = PyObject_IsTrue(args[3]);
    npy_intp k = PyLong_AsSsize_t(args[2]);
    if (k == -1 && PyErr_Occurred()) return NULL;
    const int type = PyArray_TYPE(x), nd = PyArray_NDIM(x);
    const npy_intp n = PyArray_DIM(x, axis);
    if (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_INT64) Py_RETURN_NONE;
    if (k < 0) k = n;
    if (k > n || n >= 0x7fffffff) Py_RETURN_NONE;
    for (int d = 0; d < nd; d++) dims[d] = d == axis ? k : PyArray_DIM(x, d);
    PyArrayObject *places = (PyArrayObject *)PyArray_EMPTY(nd, dims, NPY_INT64, 0);
    PyArrayObject *values = both ? (PyArrayObject *)PyArray_EMPTY(nd, dims, type, 0) : NULL;
    if (places == NULL || (both && values == NULL)) {
        Py_XDECREF(places);
        Py_XDECREF(values);
        return NULL;
    }
    if (PyArray_SIZE(places)) {
        SortWork work = {{0}, type, down, n, k, PyArray_STRIDE(x, axis), both ? PyArray_STRIDE(values, axis) : 0, PyArray_STRIDE(places, axis), 0};
        sort_lines_of(&work.lines, axis, x, values, places);
        run_parts(rank_lines, &work, PyArray_SIZE(x) / n, 1, PyArray_SIZE(x));
        if (work.no_memory) {
            Py_DECREF(places);
            Py_XDECREF(values);
            return PyErr_NoMemory();
        }
    }
    return both ? Py_BuildValue("NN", values, places) : (PyObject *)places;
}

/* extreme(axis, most, keep, x): the largest or smallest along an axis, and its place */
static PyObject *extreme(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[8];
    PyArrayObject *x = count == 4 ? movable(args[3]) : NULL;
    const int axis = x && PyArray_NDIM(x) ? axis_of(args[0], PyArray_NDIM(x)) : -1;
    if (axis < 0 || PyArray_ISBYTESWAPPED(x) || PyArray_SIZE(x) == 0) Py_RETURN_NONE;
    const int most = PyObject_IsTrue(args[1]), keep = PyObject_IsTrue(args[2]);
    const int type = PyArray_TYPE(x), nd = PyArray_NDIM(x);
    if (is_half(type)) return on_floats(extreme, self, args, count);
    if (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_INT64) Py_RETURN_NONE;
    int rank = 0;
    for (int d = 0; d < nd; d++)
        if (d != axis) dims[rank++] = PyArray_DIM(x, d);
        else if (keep) dims[rank++] = 1;
    PyArrayObject *values = (PyArrayObject *)PyArray_EMPTY(rank, dims, type, 0);
    PyArrayObject *places = (PyArrayObject *)PyArray_EMPTY(rank, dims, NPY_INT64, 0);
    if (values == NULL || places == NULL) {
        Py_XDECREF(places);
        Py_XDECREF(values);
        return NULL;
    }
    PyThreadState *saved = begin_many(PyArray_NBYTES(x));
    const npy_intp unit = PyArray_ITEMSIZE(x), n = PyArray_DIM(x, axis);
    char *value = PyArray_BYTES(values), *place = PyArray_BYTES(places);
    if (axis < nd - 1 && PyArray_IS_C_CONTIGUOUS(x)) { /* row by row, many lines at a time */
        npy_intp wide = 1;
        for (int d = axis + 1; d < nd; d++) wide *= PyArray_DIM(x, d);
        const char *from = PyArray_BYTES(x), *const end = from + PyArray_NBYTES(x);
        for (; from < end; value += wide * unit, place += wide * 8) {
            memcpy(value, from, wide * unit);
            memset(place, 0, wide * 8);
            from += wide * unit;
            for (npy_intp i = 1; i < n; i++, from += wide * unit) {
                if (type == NPY_FLOAT) surpass_f(from, wide, most, i, value, place);
                else if (type == NPY_DOUBLE) surpass_d(from, wide, most, i, value, place);
                else surpass_i(from, wide, most, i, value, place);
            }
        }
        end_many(saved);
        return Py_BuildValue("NN", values, places);
    }
    end_many(saved);
    SortWork work = {{0}, type, most, n, 1, PyArray_STRIDE(x, axis), unit, 8, 0};
    sort_lines_of(&work.lines, axis, x, NULL, NULL);
    work.lines.where[1] = value;
    work.lines.where[2] = place;
    run_parts(extremes_of_lines, &work, PyArray_SIZE(x) / n, 1, PyArray_SIZE(x));
    return Py_BuildValue("NN", values, places);
}

/* extreme_place(axis, most, keep, x): the place alone; among all elements if the axis is None */
static PyObject *extreme_place(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *y = NULL;
    if (count != 4) Py_RETURN_NONE;
    if (args[0] != Py_None) {
        PyObject *both = extreme(self, args, count);
        if (both == NULL || both == Py_None) return both;
        Py_INCREF(y = PyTuple_GET_ITEM(both, 1));
        Py_DECREF(both);
        return y;
    }
    PyArrayObject *x = movable(args[3]);
    if (x == NULL || PyArray_ISBYTESWAPPED(x) || PyArray_SIZE(x) == 0 || !PyArray_IS_C_CONTIGUOUS(x)) Py_RETURN_NONE;
    const int most = PyObject_IsTrue(args[1]), keep = PyObject_IsTrue(args[2]), type = PyArray_TYPE(x);
    if (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_INT64) Py_RETURN_NONE;
    npy_intp ones[8];
    for (int d = 0; d < PyArray_NDIM(x); d++) ones[d] = 1;
    y = PyArray_EMPTY(keep ? PyArray_NDIM(x) : 0, ones, NPY_INT64, 0);
    if (y == NULL) return NULL;
    double value; /* room for any of the three */
    PyThreadState *saved = begin_many(PyArray_NBYTES(x));
    (type == NPY_FLOAT ? extreme_f : type == NPY_DOUBLE ? extreme_d : extreme_i)(
        PyArray_BYTES(x), PyArray_ITEMSIZE(x), PyArray_SIZE(x), most, (char *)&value, PyArray_BYTES((PyArrayObject *)y));
    end_many(saved);
    return y;
}

#define COUNTS(T)                                                                                 \\
    CLONES static npy_intp count_##T(const void *given, npy_intp size) {                          \\
        npy_intp all = 0;                                                                         \\
        for (npy_intp from = 0; from < size; from += 1 << 20) {                                   \\
            const npy_intp to = from + (1 << 20) < size ? from + (1 << 20) : size;                \\
            int n = 0;                                                                            \\
            _Pragma("omp simd reduction(+:n)")                                                    \\
            for (npy_intp i = from; i < to; i++) n += ((const T *)given)[i] != 0;                 \\
            all += n;                                                                             \\
        }                                                                                         \\
        return all;                                                                               \\
    }
COUNTS(npy_bool) COUNTS(float) COUNTS(double) COUNTS(int32_t) COUNTS(int64_t)
#define count_truths count_npy_bool

typedef struct { npy_intp (*count)(const void *, npy_intp); const char *x; npy_intp unit, found; } Counted;

static void count_part(void *given, npy_intp from, npy_intp to) {
    Counted *all = given;
    __atomic_fetch_add(&all->found, all->count(all->x + from * all->unit, to - from), __ATOMIC_RELAXED);
}

/* nonzero(what, x): of numbers or truths in one piece, 0: how many are not 0; 1: whether any is; 2: all */
static PyObject *nonzero(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyArrayObject *x = count == 2 ? movable(args[1]) : NULL;
    if (x == NULL || PyArray_ISBYTESWAPPED(x) || !(PyArray_IS_C_CONTIGUOUS(x) || PyArray_IS_F_CONTIGUOUS(x))) Py_RETURN_NONE;
    Counted all = {NULL, PyArray_BYTES(x), PyArray_ITEMSIZE(x), 0};
    switch (PyArray_TYPE(x)) {
        case NPY_BOOL: all.count = count_npy_bool; break;
        case NPY_FLOAT: all.count = count_float; break;
        case NPY_DOUBLE: all.count = count_double; break;
        case NPY_INT32: all.count = count_int32_t; break;
        case NPY_INT64: all.count = count_int64_t; break;
        default: Py_RETURN_NONE;
    }
    run_parts(count_part, &all, PyArray_SIZE(x), 1024, PyArray_SIZE(x));
    const long what = PyLong_AsLong(args[0]);
    if (what == -1 && PyErr_Occurred()) return NULL;
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(0, NULL, what ? NPY_BOOL : NPY_INT64, 0);
    if (y == NULL) return NULL;
    if (what) *(npy_bool *)PyArray_DATA(y) = what == 1 ? all.found > 0 : all.found == PyArray_SIZE(x);
    else *(int64_t *)PyArray_DATA(y) = all.found;
    return (PyObject *)y;
}

/* nonzero_places(x): where an array of truths is true, a row an axis */
static PyObject *nonzero_places(PyObject *self, PyObject *given) {
    PyArrayObject *x = movable(given);
    if (x == NULL || PyArray_TYPE(x) != NPY_BOOL || !PyArray_IS_C_CONTIGUOUS(x)) Py_RETURN_NONE;
    const int nd = PyArray_NDIM(x);
    const npy_bool *truth = PyArray_DATA(x);
    const npy_intp size = PyArray_SIZE(x);
    npy_intp n = 0;
    int64_t *to[8];
    if (nd == 0) Py_RETURN_NONE;
    n = count_truths(truth, size);
    npy_intp dims[2] = {nd, n};
    PyObject *found = PyArray_EMPTY(2, dims, NPY_INT64, 0);
    if (found == NULL) return NULL;
    for (int d = 0; d < nd; d++) to[d] = (int64_t *)PyArray_DATA((PyArrayObject *)found) + d * n;
    const npy_intp wide = PyArray_DIM(x, nd - 1);
    npy_intp k = 0;
    for (npy_intp line = 0; line * wide < size; line++)
        for (npy_intp i = 0; i < wide; i++)
            if (truth[line * wide + i]) {
                npy_intp rest = line;
                to[nd - 1][k] = i;
                for (int d = nd - 2; d >= 0; rest /= PyArray_DIM(x, d--))
                    to[d][k] = rest % PyArray_DIM(x, d);
                k++;
            }
    return found;
}

/* masked(x, mask): the elements where a mask of the same shape is true */
static PyObject *masked(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyArrayObject *x = count == 2 ? movable(args[0]) : NULL;
    if (x == NULL || !PyArray_IS_C_CONTIGUOUS(x)) Py_RETURN_NONE;
    if (!has_shape(args[1], PyArray_NDIM(x), PyArray_DIMS(x), NPY_BOOL)) Py_RETURN_NONE;
    const npy_bool *truth = PyArray_DATA((PyArrayObject *)args[1]);
    const npy_intp size = PyArray_SIZE(x), unit = PyArray_ITEMSIZE(x);
    npy_intp n = 0;
    n = count_truths(truth, size);
    PyArrayObject *y = new_rows(x, 1, &n);
    if (y == NULL) return NULL;
    PyThreadState *saved = begin_many(size * unit);
    char *to = PyArray_BYTES(y), *const end = to + n * unit;
    const char *from = PyArray_BYTES(x);
    if (unit == 4) /* written each time, and kept if it should be: no branch to guess wrong */
        for (npy_intp i = 0; to < end; to += truth[i++] ? 4 : 0)
            *(u32 *)to = ((const u32 *)from)[i];
    else if (unit == 8)
        for (npy_intp i = 0; to < end; to += truth[i++] ? 8 : 0)
            *(u64 *)to = ((const u64 *)from)[i];
    else
        for (npy_intp i = 0; to < end; i++)
            if (truth[i]) { memcpy(to, from + i * unit, unit); to += unit; }
    end_many(saved);
    return (PyObject *)y;
}

/* unmasked(g, mask): zeros of the shape of a mask, with g where it is true */
static PyObject *unmasked(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyArrayObject *g = count == 2 ? movable(args[0]) : NULL;
    PyArrayObject *mask = count == 2 ? movable(args[1]) : NULL;
    if (!g || !mask || PyArray_NDIM(g) != 1 || !PyArray_IS_C_CONTIGUOUS(g)) Py_RETURN_NONE;
    if (PyArray_TYPE(mask) != NPY_BOOL || !PyArray_IS_C_CONTIGUOUS(mask)) Py_RETURN_NONE;
    const npy_bool *truth = PyArray_DATA(mask);
    const npy_intp size = PyArray_SIZE(mask), unit = PyArray_ITEMSIZE(g);
    npy_intp n = 0;
    n = count_truths(truth, size);
    if (n != PyArray_SIZE(g)) Py_RETURN_NONE;
    PyArrayObject *y = new_rows(g, PyArray_NDIM(mask), PyArray_DIMS(mask));
    if (y == NULL) return NULL;
    PyThreadState *saved = begin_many(size * unit);
    char *to = PyArray_BYTES(y);
    const char *from = PyArray_BYTES(g);
    memset(to, 0, size * unit);
    for (npy_intp i = 0; i < size; i++)
        if (truth[i]) {
            memcpy(to + i * unit, from, unit);
            from += unit;
        }
    end_many(saved);
    return (PyObject *)y;
}
"""

_TYPES = (
    ("f", "float", "narrow", "uint32_t", "(uint64_t)q << 32 | (uint32_t)i", "e[i] & 0xffffffffu"),
    ("d", "double", "wide", "uint64_t", "(wide_entry){q, i}", "e[i].at"),
    ("i", "int64_t", "wide", "uint64_t", "(wide_entry){q, i}", "e[i].at"),
)
METHODS = "".join(
    f'    {{"{n}", (PyCFunction){n}, METH_O, NULL}},\n' for n in ("nonzero_places",)
) + "".join(
    f'    {{"{n}", (PyCFunction)(void (*)(void)){n}, METH_FASTCALL, NULL}},\n'
    for n in ("ranked", "extreme", "extreme_place", "nonzero", "masked", "unmasked")
)


def c_sorting() -> str:
    """The C of all of it, which stands behind that of `codegen.members`."""
    parts = [_KEYS]
    for kind, digits in (("narrow", "4"), ("wide", "8")):
        parts.append(_SORT.replace("@K", kind).replace("@D", digits))
    for letter, name, kind, key, entry, place in _TYPES:
        text = _RANK.replace("@L", letter).replace("@T", name).replace("@K", kind)
        parts.append(text.replace("@Q", key).replace("@E", entry).replace("@A", place))
    return "".join([*parts, _CALLS])
