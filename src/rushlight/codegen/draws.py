"""Random numbers as C: PyTorch's Mersenne Twister, and arrays filled from it.

`Twister` is an object that holds the state of one generator. Its methods fill arrays as the
functions of `rushlight.random` do, which are the readable form: `random.draw`, `random.normals` and
`random.integers` say why each step is what it is. A method that is not made for an array (of
another dtype, or not in one piece) answers False and has drawn nothing; then the caller goes the
way over NumPy, with the words that `take32` and `take64` give.

Note [Fused steps]
    PyTorch's normals of float32 take multiplications and additions that round once. Where the
    processor has no such instruction a step is computed in double and rounded: that rounds twice,
    but over all the 2^24 numbers that are drawn no step differs. The compiler is told to fuse
    nothing of its own accord (`setup.py`), so each place that does is written out.
"""

from __future__ import annotations

from rushlight.codegen.products import TILES
from rushlight.codegen.rejected import METHODS, c_rejected

_LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)

_TWISTER = """
/* --- random numbers: see rushlight.codegen.draws --- */
#define KEYS 624
typedef struct {
    PyObject_HEAD
    uint32_t key[KEYS];
    int pos;        /* of the next word; KEYS: the words are used up */
    char drawn;     /* whether a word was taken since the seed was given */
    char busy;      /* a draw of many numbers goes on, or one of several steps */
    char has_normal;
    double normal;  /* the second of a pair, drawn but not used */
} Twister;

static inline uint32_t twisted(uint32_t upper, uint32_t lower, uint32_t far) {
    const uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);
    return far ^ (y >> 1) ^ (-(y & 1u) & 0x9908b0dfu);
}

/* The next 624 words. A word needs one that is 227 places before it: far enough for any vector. */
CLONES static void renew_words(uint32_t *key) {
#pragma omp simd
    for (int i = 0; i < 227; i++) key[i] = twisted(key[i], key[i + 1], key[i + 397]);
#pragma omp simd safelen(128)
    for (int i = 227; i < 623; i++) key[i] = twisted(key[i], key[i + 1], key[i - 227]);
    key[623] = twisted(key[623], key[0], key[396]);
}

static inline uint32_t tempered(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

CLONES static void temper_words(const uint32_t *key, uint32_t *to, npy_intp n) {
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) to[i] = tempered(key[i]);
}

static inline uint32_t one_word(Twister *t) {
    if (t->pos == KEYS) {
        renew_words(t->key);
        t->pos = 0;
    }
    t->drawn = 1;
    return tempered(t->key[t->pos++]);
}

static void take_words(Twister *t, uint32_t *to, npy_intp n) {
    if (n) t->drawn = 1;
    while (n) {
        if (t->pos == KEYS) {
            renew_words(t->key);
            t->pos = 0;
        }
        const npy_intp now = n < KEYS - t->pos ? n : KEYS - t->pos;
        temper_words(t->key + t->pos, to, now);
        t->pos += (int)now;
        to += now;
        n -= now;
    }
}

static inline uint64_t join_words(const uint32_t *pair) {
    return (uint64_t)pair[0] << 32 | pair[1];
}

/* A multiple of 2^-53 below 1 of two words; in halves, since few processors turn 64 bits into a
   double in one step */
static inline double unit_of(const uint32_t *pair) {
    const double lower = (double)(int32_t)(pair[1] ^ 0x80000000u) + 2147483648.0;
    return ((double)(int32_t)(pair[0] & 0x1fffffu) * 4294967296.0 + lower) * 0x1p-53;
}

#define PIECE 1024 /* words on their way, which stay in the nearest cache */
#define MANY_DRAWN 20000 /* numbers: from there on other threads may run meanwhile */

CLONES static void units_f(const uint32_t *words, float *to, npy_intp n) {
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) to[i] = (float)(int32_t)(words[i] & 0xffffffu) * 0x1p-24f;
}

CLONES static void units_d(const uint32_t *words, double *to, npy_intp n) {
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) to[i] = unit_of(words + 2 * i);
}

static void fill_units_f(Twister *t, float *to, npy_intp n) {
    uint32_t words[PIECE];
    for (npy_intp now; n; n -= now, to += now) {
        now = n < PIECE ? n : PIECE;
        take_words(t, words, now);
        units_f(words, to, now);
    }
}

static void fill_units_d(Twister *t, double *to, npy_intp n) {
    uint32_t words[PIECE];
    for (npy_intp now; n; n -= now, to += now) {
        now = n < PIECE / 2 ? n : PIECE / 2;
        take_words(t, words, 2 * now);
        units_d(words, to, now);
    }
}

static inline double one_unit(Twister *t) {
    const uint32_t upper = one_word(t), lower = one_word(t);
    return (double)(int64_t)((uint64_t)(upper & 0x1fffffu) << 32 | lower) * 0x1p-53;
}
"""

# Blocks of 16: eight radii, eight angles. @FMA(a, b, c) is a step that rounds once.
_POLAR = """
@TARGET static void polar_f_@V(float *b, npy_intp blocks, float mean, float std) {
    for (npy_intp k = 0; k < blocks; k++, b += 16) {
#pragma omp simd
        for (int i = 0; i < 8; i++) {
            union { float f; int32_t i; } u, v, s, c;
            u.f = 1.0f - b[i];
            const int32_t power = (u.i - 0x3f3504f3) >> 23;
            u.i -= power << 23;
            float x = u.f - 1.0f, z = x * x, e = (float)power, y;
            y = @LOG;
            y = y * x;
            y = @FMA(y, z, (e * -2.12194440e-4f));
            y = y - z * 0.5f;
            const float radius = sqrtf(((x + y) + e * 0.693359375f) * -2.0f);
            const float angle = b[i + 8] * 6.283185307179586f;
            const int32_t j = ((int32_t)(angle * 1.27323954473516f) + 1) & ~1;
            const float turns = (float)j;
            x = @FMA(turns, -0.78515625f, angle);
            x = @FMA(turns, -2.4187564849853515625e-4f, x);
            x = @FMA(turns, -3.77489497744594108e-8f, x);
            z = x * x;
            y = @COS;
            y = y * z;
            c.f = @FMA(y, z, (z * -0.5f)) + 1.0f;
            y = @SIN;
            y = y * z;
            s.f = @FMA(y, x, x);
            const int32_t swap = (s.i ^ c.i) & -(j >> 1 & 1);
            u.i = (c.i ^ swap) ^ (int32_t)((uint32_t)((j + 2) & 4) << 29);
            v.i = (s.i ^ swap) ^ (int32_t)((uint32_t)(j & 4) << 29);
            b[i] = radius * u.f;
            b[i + 8] = radius * v.f;
        }
        if (mean == 0.0f) /* the sum turns -0 into +0 */
            for (int i = 0; i < 16; i++) b[i] = b[i] * std + mean;
        else
            for (int i = 0; i < 16; i++) b[i] = fmaf(b[i], std, mean);
    }
}

/* low + span times each; what reaches high becomes low */
@TARGET static void spread_f_@V(float *b, npy_intp n, float low, float high, float span) {
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        const float y = fmaf(b[i], span, low);
        b[i] = y == high ? low : y;
    }
}

@TARGET static void spread_d_@V(double *b, npy_intp n, double low, double high, double span) {
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        const double y = fma(b[i], span, low);
        b[i] = y == high ? low : y;
    }
}
"""

_FILLS = """
static void (*const polar_f[])(float *, npy_intp, float, float) = {@polar_f};
static void (*const spread_f[])(float *, npy_intp, float, float, float) = {@spread_f};
static void (*const spread_d[])(double *, npy_intp, double, double, double) = {@spread_d};

static void polar_d(double *b, npy_intp blocks, double mean, double std) {
    for (npy_intp k = 0; k < blocks; k++, b += 16)
        for (int i = 0; i < 8; i++) {
            const double radius = sqrt(-2.0 * log(1.0 - b[i]));
            const double angle = 6.283185307179586 * b[i + 8];
            const double x = radius * cos(angle), y = radius * sin(angle);
            b[i] = mean == 0.0 ? x * std + mean : fma(x, std, mean);
            b[i + 8] = mean == 0.0 ? y * std + mean : fma(y, std, mean);
        }
}

/* Normals one by one, of mean 0 and deviation 1; the odd one is kept. */
static double one_normal(Twister *t) {
    if (t->has_normal) {
        t->has_normal = 0;
        return t->normal;
    }
    const double first = one_unit(t), second = one_unit(t);
    const double radius = sqrt(-2.0 * log1p(-second)), angle = 6.283185307179586 * first;
    t->normal = radius * sin(angle);
    t->has_normal = 1;
    return radius * cos(angle);
}

static double scaled(double x, double mean, double std) {
    return mean == 0.0 ? x * std + mean : fma(x, std, mean);
}

#define NORMALS(T, L)                                                                             \\
    static void fill_normals_##L(Twister *t, T *to, npy_intp n, double mean, double std) {        \\
        const npy_intp whole = n / 16;                                                            \\
        T *const end = to + n, *b = to;                                                           \\
        if (n < 16) {                                                                             \\
            for (; b < end; b++) *b = (T)scaled(one_normal(t), mean, std);                        \\
            return;                                                                               \\
        }                                                                                         \\
        for (npy_intp left = whole, now; left; left -= now, b += 16 * now) {                      \\
            now = left < 64 ? left : 64; /* what is filled is transformed while it is near */     \\
            fill_units_##L(t, b, 16 * now);                                                       \\
            POLAR_##L(b, now, (T)mean, (T)std);                                                   \\
        }                                                                                         \\
        if (b < end) { /* what is left over costs a block of its own */                           \\
            fill_units_##L(t, b, end - b);                                                        \\
            fill_units_##L(t, end - 16, 16);                                                      \\
            POLAR_##L(end - 16, 1, (T)mean, (T)std);                                              \\
        }                                                                                         \\
    }
#define POLAR_f polar_f[processor]
#define POLAR_d polar_d
NORMALS(float, f)
NORMALS(double, d)

/* A word and a bound: 1 where the two words' 53 bits are below it, times `one`. */
#define KEEPS(T, L)                                                                               \\
    CLONES static void keep_##L(const uint32_t *words, T *to, npy_intp n, int64_t bound, T one) { \\
        _Pragma("omp simd")                                                                       \\
        for (npy_intp i = 0; i < n; i++) {                                                        \\
            const int64_t k = (int64_t)(join_words(words + 2 * i) & 0x1fffffffffffff);            \\
            to[i] = k < bound ? one : 0;                                                          \\
        }                                                                                         \\
    }                                                                                             \\
    static void fill_keeps_##L(Twister *t, T *to, npy_intp n, double p, T one) {                  \\
        uint32_t words[PIECE];                                                                    \\
        const int64_t bound = (int64_t)ceil(p * 0x1p53);                                          \\
        for (npy_intp now; n; n -= now, to += now) {                                              \\
            now = n < PIECE / 2 ? n : PIECE / 2;                                                  \\
            take_words(t, words, 2 * now);                                                        \\
            keep_##L(words, to, now, bound, one);                                                 \\
        }                                                                                         \\
    }
KEEPS(float, f)
KEEPS(double, d)
KEEPS(npy_bool, b)

/* 1 where the next number is below that in the same place, else 0. */
#define KEEPS_BY(T, L)                                                                            \\
    static void fill_keeps_by_##L(Twister *t, T *to, npy_intp n, const T *p) {                    \\
        fill_units_##L(t, to, n);                                                                 \\
        for (npy_intp i = 0; i < n; i++) to[i] = to[i] < p[i];                                    \\
    }                                                                                             \\
    static int are_chances_##L(const T *p, npy_intp n) {                                          \\
        int good = 1;                                                                             \\
        for (npy_intp i = 0; i < n; i++) good &= p[i] >= 0 && p[i] <= 1;                          \\
        return good;                                                                              \\
    }
KEEPS_BY(float, f)
KEEPS_BY(double, d)

#define EXPONENTIALS(T, L)                                                                        \\
    static void fill_exponentials_##L(Twister *t, T *to, npy_intp n, double factor) {             \\
        double unit[PIECE / 2];                                                                   \\
        for (npy_intp now; n; n -= now, to += now) {                                              \\
            now = n < PIECE / 2 ? n : PIECE / 2;                                                  \\
            fill_units_d(t, unit, now);                                                           \\
            for (npy_intp i = 0; i < now; i++) to[i] = (T)(log1p(-unit[i]) * factor);             \\
        }                                                                                         \\
    }
EXPONENTIALS(float, f)
EXPONENTIALS(double, d)

static void fill_integers(Twister *t, int64_t *to, npy_intp n, int64_t low, uint64_t span) {
    uint32_t words[PIECE];
    const int wide = span >= 1 << 28;
    const uint32_t narrow = (uint32_t)span;
    for (npy_intp now; n; n -= now, to += now) {
        now = n < PIECE / 2 ? n : PIECE / 2;
        take_words(t, words, wide ? 2 * now : now);
        for (npy_intp i = 0; i < now; i++) { /* unsigned: the sum may pass 2^63 on its way */
            const uint64_t found = wide ? join_words(words + 2 * i) % span : words[i] % narrow;
            to[i] = (int64_t)(found + (uint64_t)low);
        }
    }
}

/* Step i swaps place i with one of those from it on. */
static void shuffle(Twister *t, int64_t *order, npy_intp n) {
    uint32_t words[PIECE];
    for (npy_intp i = 0; i < n; i++) order[i] = i;
    for (npy_intp from = 0, now; from < n - 1; from += now) {
        now = n - 1 - from < PIECE ? n - 1 - from : PIECE;
        take_words(t, words, now);
        for (npy_intp i = from; i < from + now; i++) {
            const npy_intp j = i + words[i - from] % (uint32_t)(n - i);
            const int64_t kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
    }
}
"""

_METHODS = """
/* An array in one piece that may be written: its type; -1 for anything else. */
static int fillable(PyObject *x) {
    if (!PyArray_CheckExact(x) || !PyArray_ISCARRAY((PyArrayObject *)x)) return -1;
    return PyArray_TYPE((PyArrayObject *)x);
}

static int read_numbers(PyObject *const *from, double *to, int n) {
    for (int i = 0; i < n; i++) {
        to[i] = PyFloat_AsDouble(from[i]);
        if (to[i] == -1.0 && PyErr_Occurred()) return 0;
    }
    return 1;
}

static int few_arguments(Py_ssize_t count, Py_ssize_t wanted) {
    if (count == wanted) return 0;
    PyErr_Format(PyExc_TypeError, "takes %zd arguments, not %zd", wanted, count);
    return 1;
}

static PyThreadState *begin_draw(Twister *t, npy_intp n) {
    if (n <= MANY_DRAWN) return NULL;
    t->busy = 1;
    return PyEval_SaveThread();
}

static void end_draw(Twister *t, PyThreadState *saved) {
    if (saved == NULL) return;
    PyEval_RestoreThread(saved);
    t->busy = 0;
}

/* The callers hold the generator's lock; other threads may run while many numbers are drawn. What
   makes a new array is called without it, for the lock takes as long as to draw a hundred numbers:
   it looks whether the twister is busy instead, and runs while no other thread does. */
#define FILLING(a)                                                                                \\
    PyArrayObject *const filled = (PyArrayObject *)(a);                                           \\
    void *const to = PyArray_DATA(filled);                                                        \\
    const npy_intp n = PyArray_SIZE(filled);                                                      \\
    PyThreadState *const saved = begin_draw(t, n);
#define FILLED                                                                                    \\
    end_draw(t, saved);                                                                           \\
    Py_RETURN_TRUE;

@BODIES
static PyObject *twister_uniform(Twister *t, PyObject *const *args, Py_ssize_t count) {
    double p[2];
    if (few_arguments(count, 3) || !read_numbers(args + 1, p, 2)) return NULL;
    const int type = fillable(args[0]);
    if (type != NPY_FLOAT && type != NPY_DOUBLE) Py_RETURN_FALSE;
    FILLING(args[0])
    if (type == NPY_FLOAT) {
        fill_units_f(t, to, n);
        const float low = (float)p[0], high = (float)p[1];
        if (low != 0 || high != 1) spread_f[processor](to, n, low, high, high - low);
    } else {
        fill_units_d(t, to, n);
        if (p[0] != 0 || p[1] != 1) spread_d[processor](to, n, p[0], p[1], p[1] - p[0]);
    }
    FILLED
}

static PyObject *twister_normals(Twister *t, PyObject *const *args, Py_ssize_t count) {
    double p[2];
    if (few_arguments(count, 3) || !read_numbers(args + 1, p, 2)) return NULL;
    const int type = fillable(args[0]);
    if (type != NPY_FLOAT && type != NPY_DOUBLE) Py_RETURN_FALSE;
    FILLING(args[0])
    if (type == NPY_FLOAT) fill_normals_f(t, to, n, p[0], p[1]);
    else fill_normals_d(t, to, n, p[0], p[1]);
    FILLED
}

/* The sizes that f(2, 3) or f((2, 3)) was given: how many; -1 if that is for others to look at. */
static int read_sizes(PyObject *given, npy_intp *dims) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) == 0) return -1;
    if (PyTuple_GET_SIZE(given) == 1 && PyTuple_Check(PyTuple_GET_ITEM(given, 0)))
        given = PyTuple_GET_ITEM(given, 0);
    const Py_ssize_t count = PyTuple_GET_SIZE(given);
    if (count > 16) return -1;
    double all = 1;
    for (Py_ssize_t d = 0; d < count; d++) {
        PyObject *const item = PyTuple_GET_ITEM(given, d);
        if (!PyLong_CheckExact(item)) return -1;
        dims[d] = PyLong_AsSsize_t(item);
        if (dims[d] < 0) { PyErr_Clear(); return -1; }
        all *= (double)dims[d];
    }
    return all <= 1e10 ? (int)count : -1;
}

/* made(sizes, type, first, second): a new array filled by the method `fill`, or None */
static PyObject *fill_new(Twister *t, PyObject *const *args, Py_ssize_t count,
                          PyObject *(*fill)(Twister *, PyObject *const *, Py_ssize_t))
{
    npy_intp dims[16];
    if (few_arguments(count, 4)) return NULL;
    if (t->busy) Py_RETURN_NONE;
    const int nd = read_sizes(args[0], dims);
    const long type = PyLong_AsLong(args[1]);
    if (type == -1 && PyErr_Occurred()) return NULL;
    npy_intp all = 1;
    for (int d = 0; d < nd; d++) all *= dims[d];
    if (nd < 0 || all > MANY_DRAWN || (type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NONE;
    PyObject *made = PyArray_EMPTY(nd, dims, (int)type, 0);
    if (made == NULL) return NULL;
    PyObject *given[3] = {made, args[2], args[3]}, *done = fill(t, given, 3);
    if (done == NULL) { Py_DECREF(made); return NULL; }
    Py_DECREF(done);
    return made;
}

static PyObject *twister_new_uniform(Twister *t, PyObject *const *args, Py_ssize_t count) {
    return fill_new(t, args, count, twister_uniform);
}

static PyObject *twister_new_normals(Twister *t, PyObject *const *args, Py_ssize_t count) {
    return fill_new(t, args, count, twister_normals);
}

/* new_integers(sizes, low, span), likewise, of int64 */
static PyObject *twister_new_integers(Twister *t, PyObject *const *args, Py_ssize_t count) {
    npy_intp dims[16], all = 1;
    if (few_arguments(count, 3)) return NULL;
    const long long low = PyLong_AsLongLong(args[1]);
    const unsigned long long span = PyLong_AsUnsignedLongLong(args[2]);
    if (PyErr_Occurred()) { PyErr_Clear(); Py_RETURN_NONE; }
    const int nd = t->busy || span == 0 ? -1 : read_sizes(args[0], dims);
    for (int d = 0; d < nd; d++) all *= dims[d];
    const long long far = 1ll << 62; /* beyond, bounds are looked at with more care */
    if (nd < 0 || all > MANY_DRAWN || span > (1ull << 62)) Py_RETURN_NONE;
    if (low > far || low < -far) Py_RETURN_NONE;
    PyArrayObject *made = (PyArrayObject *)PyArray_EMPTY(nd, dims, NPY_INT64, 0);
    if (made) fill_integers(t, PyArray_DATA(made), all, low, span);
    return (PyObject *)made;
}

static PyObject *twister_keeps(Twister *t, PyObject *const *args, Py_ssize_t count) {
    double p[2];
    if (few_arguments(count, 3) || !read_numbers(args + 1, p, 2)) return NULL;
    const int type = fillable(args[0]);
    if (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_BOOL) Py_RETURN_FALSE;
    FILLING(args[0])
    if (type == NPY_FLOAT) fill_keeps_f(t, to, n, p[0], (float)p[1]);
    else if (type == NPY_DOUBLE) fill_keeps_d(t, to, n, p[0], p[1]);
    else fill_keeps_b(t, to, n, p[0], 1);
    FILLED
}

static PyObject *twister_keeps_by(Twister *t, PyObject *const *args, Py_ssize_t count) {
    if (few_arguments(count, 2)) return NULL;
    const int type = fillable(args[0]);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !PyArray_CheckExact(args[1])) Py_RETURN_FALSE;
    PyArrayObject *chances = (PyArrayObject *)args[1];
    if (PyArray_TYPE(chances) != type || !PyArray_ISCARRAY_RO(chances)) Py_RETURN_FALSE;
    if (!PyArray_SAMESHAPE(chances, (PyArrayObject *)args[0])) Py_RETURN_FALSE;
    const char *const p = PyArray_BYTES(chances), *const there = PyArray_BYTES((PyArrayObject *)args[0]);
    const npy_intp all = PyArray_SIZE(chances), far = PyArray_NBYTES(chances);
    if (p < there + far && there < p + far) Py_RETURN_FALSE; /* what is read would be overwritten */
    if (!(type == NPY_FLOAT ? are_chances_f((const float *)p, all) : are_chances_d((const double *)p, all))) Py_RETURN_FALSE;
    FILLING(args[0])
    if (type == NPY_FLOAT) fill_keeps_by_f(t, to, n, (const float *)p);
    else fill_keeps_by_d(t, to, n, (const double *)p);
    FILLED
}

static PyObject *twister_exponentials(Twister *t, PyObject *const *args, Py_ssize_t count) {
    double p[1];
    if (few_arguments(count, 2) || !read_numbers(args + 1, p, 1)) return NULL;
    const int type = fillable(args[0]);
    if (type != NPY_FLOAT && type != NPY_DOUBLE) Py_RETURN_FALSE;
    FILLING(args[0])
    if (type == NPY_FLOAT) fill_exponentials_f(t, to, n, -1.0 / p[0]);
    else fill_exponentials_d(t, to, n, -1.0 / p[0]);
    FILLED
}

static PyObject *twister_integers(Twister *t, PyObject *const *args, Py_ssize_t count) {
    if (few_arguments(count, 3)) return NULL;
    const long long low = PyLong_AsLongLong(args[1]);
    const unsigned long long span = PyLong_AsUnsignedLongLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    if (fillable(args[0]) != NPY_INT64 || span == 0) Py_RETURN_FALSE;
    FILLING(args[0])
    fill_integers(t, to, n, low, span);
    FILLED
}

static PyObject *twister_shuffled(Twister *t, PyObject *given) {
    npy_intp size = PyLong_AsSsize_t(given);
    if (size == -1 && PyErr_Occurred()) return NULL;
    PyObject *order = PyArray_EMPTY(1, &size, NPY_INT64, 0);
    if (order == NULL) return NULL;
    PyThreadState *saved = begin_draw(t, size);
    shuffle(t, PyArray_DATA((PyArrayObject *)order), size);
    end_draw(t, saved);
    return order;
}

/* the next n words, or pairs of them */
static PyObject *some_words(Twister *t, PyObject *given, int type) {
    npy_intp size = PyLong_AsSsize_t(given);
    if (size == -1 && PyErr_Occurred()) return NULL;
    PyArrayObject *made = (PyArrayObject *)PyArray_EMPTY(1, &size, type, 0);
    if (made == NULL) return NULL;
    PyThreadState *saved = begin_draw(t, size);
    if (type == NPY_UINT32) take_words(t, PyArray_DATA(made), size);
    else {
        uint32_t words[PIECE];
        uint64_t *to = PyArray_DATA(made);
        for (npy_intp left = size, now; left; left -= now, to += now) {
            now = left < PIECE / 2 ? left : PIECE / 2;
            take_words(t, words, 2 * now);
            for (npy_intp i = 0; i < now; i++) to[i] = join_words(words + 2 * i);
        }
    }
    end_draw(t, saved);
    return (PyObject *)made;
}

static PyObject *twister_take32(Twister *t, PyObject *given) {
    return some_words(t, given, NPY_UINT32);
}

static PyObject *twister_take64(Twister *t, PyObject *given) {
    return some_words(t, given, NPY_UINT64);
}

static PyObject *twister_seed(Twister *t, PyObject *given) {
    const unsigned long seed = PyLong_AsUnsignedLong(given);
    if (PyErr_Occurred()) return NULL;
    t->key[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < KEYS; i++)
        t->key[i] = 1812433253u * (t->key[i - 1] ^ (t->key[i - 1] >> 30)) + i;
    t->pos = KEYS;
    t->drawn = t->has_normal = 0;
    Py_RETURN_NONE;
}

static PyObject *twister_get_normal(Twister *t, void *closure) {
    if (t->has_normal) return PyFloat_FromDouble(t->normal);
    Py_RETURN_NONE;
}

static int twister_set_normal(Twister *t, PyObject *value, void *closure) {
    const double x = value == NULL || value == Py_None ? 0.0 : PyFloat_AsDouble(value);
    if (x == -1.0 && PyErr_Occurred()) return -1;
    t->has_normal = value != NULL && value != Py_None;
    t->normal = x;
    return 0;
}

static PyObject *twister_get(Twister *t, PyObject *ignored) {
    npy_intp size = KEYS;
    PyObject *key = PyArray_EMPTY(1, &size, NPY_UINT32, 0);
    if (key == NULL) return NULL;
    memcpy(PyArray_DATA((PyArrayObject *)key), t->key, sizeof t->key);
    PyObject *normal = twister_get_normal(t, NULL);
    return Py_BuildValue("NiNN", key, t->pos, PyBool_FromLong(t->drawn), normal);
}

static PyObject *twister_set(Twister *t, PyObject *const *args, Py_ssize_t count) {
    if (few_arguments(count, 4)) return NULL;
    const long pos = PyLong_AsLong(args[1]);
    const int drawn = PyObject_IsTrue(args[2]);
    if ((pos == -1 && PyErr_Occurred()) || drawn < 0) return NULL;
    if (fillable(args[0]) != NPY_UINT32 || PyArray_SIZE((PyArrayObject *)args[0]) != KEYS ||
        pos < 0 || pos > KEYS) {
        PyErr_SetString(PyExc_ValueError, "a state is 624 words of 32 bits and a place among them");
        return NULL;
    }
    memcpy(t->key, PyArray_DATA((PyArrayObject *)args[0]), sizeof t->key);
    t->pos = (int)pos;
    t->drawn = (char)drawn;
    if (twister_set_normal(t, args[3], NULL) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *twister_get_busy(Twister *t, void *closure) { return PyBool_FromLong(t->busy); }

static int twister_set_busy(Twister *t, PyObject *value, void *closure) {
    const int truth = value == NULL ? 0 : PyObject_IsTrue(value);
    if (truth >= 0) t->busy = (char)truth;
    return truth < 0 ? -1 : 0;
}

static PyObject *twister_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    unsigned long seed = 0;
    if (!PyArg_ParseTuple(args, "k", &seed)) return NULL;
    PyObject *made = type->tp_alloc(type, 0), *given = PyLong_FromUnsignedLong(seed & 0xffffffffu);
    if (made && given) Py_DECREF(twister_seed((Twister *)made, given));
    Py_XDECREF(given);
    return made;
}

#define QUICK(name, text) {#name, (PyCFunction)(void (*)(void))twister_##name, METH_FASTCALL, text}
#define SINGLE(name, text) {#name, (PyCFunction)twister_##name, METH_O, text}
static PyMethodDef twister_methods[] = {
    QUICK(uniform, "uniform(a, low, high): fill an array; whether it could."),
    QUICK(normals, "normals(a, mean, std), likewise."),
    QUICK(new_uniform, "new_uniform(sizes, type, low, high): a new array, or None."),
    QUICK(new_normals, "new_normals(sizes, type, mean, std), likewise."),
    QUICK(new_integers, "new_integers(sizes, low, span), likewise, of int64."),
    QUICK(keeps, "keeps(a, p, one): `one` with probability p, else 0."),
    QUICK(keeps_by, "keeps_by(a, p): 1 with the probability in the same place of another array, else 0."),
    QUICK(exponentials, "exponentials(a, rate), likewise."),
    QUICK(integers, "integers(a, low, span): from low to low + span - 1, of int64."),
    SINGLE(shuffled, "shuffled(n): 0 to n - 1 in random order."),
    SINGLE(take32, "take32(n): the next n words."),
    SINGLE(take64, "take64(n): the next n pairs of words, the first of a pair on top."),
    SINGLE(seed, "seed(n): start over, from 32 bits."),
@REJECTED
    {"get", (PyCFunction)twister_get, METH_NOARGS,
     "get(): the words, the place of the next, whether any was taken, a normal kept or None."},
    QUICK(set, "set(words, place, taken, normal): go on from there."),
    {NULL, NULL, 0, NULL}
};

static PyGetSetDef twister_members[] = {
    {"normal", (getter)twister_get_normal, (setter)twister_set_normal,
     "A normal kept for later, or None.", NULL},
    {"busy", (getter)twister_get_busy, (setter)twister_set_busy,
     "Whether a draw of several steps goes on.", NULL},
    {NULL, NULL, NULL, NULL, NULL}
};

static PyTypeObject Twister_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._kernels.Twister",
    .tp_basicsize = sizeof(Twister),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = twister_new,
    .tp_methods = twister_methods,
    .tp_getset = twister_members,
    .tp_doc = "The Mersenne Twister of a generator, written by rushlight.codegen.",
};

static int add_draws(PyObject *module) {
    return PyType_Ready(&Twister_Type) == 0 && PyModule_AddType(module, &Twister_Type) == 0;
}
"""


def _horner(x: str, coefficients: tuple[float, ...]) -> str:
    text = f"{coefficients[0]!r}f"
    for c in coefficients[1:]:
        text = f"@FMA({text}, {x}, {c!r}f)"
    return text


def c_draws() -> str:
    """The C of all of it."""
    parts = [_TWISTER]
    fused = {"v1": "FUSED_BY_DOUBLE"}
    parts.append("#define FUSED_BY_DOUBLE(a, b, c) ((float)((double)(a) * (b) + (c)))")
    kinds: dict[str, list[str]] = {"polar_f": [], "spread_f": [], "spread_d": []}
    for i, tile in enumerate(TILES):
        text = _POLAR
        for name, x, c in (("LOG", "x", _LOG), ("COS", "z", _COS), ("SIN", "z", _SIN)):
            text = text.replace(f"@{name}", _horner(x, c))
        target = f"__attribute__(({tile.target}))" if tile.target else ""
        text = text.replace("@FMA", fused.get(tile.suffix, "__builtin_fmaf"))
        text = text.replace("@TARGET", target).replace("@V", tile.suffix)
        if i:
            text = (
                f"#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__){text}#endif"
            )
        parts.append(text)
        for kind, found in kinds.items():
            begin, end = ("X86(", ")") if i else ("", "")
            found.append(f"{begin}{kind}_{tile.suffix},{end}")
    fills = _FILLS
    for kind, found in kinds.items():
        fills = fills.replace(f"@{kind}", " ".join(found))
    methods = _METHODS.replace("@BODIES", c_rejected()).replace("@REJECTED", METHODS)
    return "\n".join([*parts, fills, methods])
