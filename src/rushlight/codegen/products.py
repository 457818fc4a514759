"""Convolutions that move by 1, as C: products with a matrix that is never written down.

Note [Shifted products]
    Lay a padded sample out as one row of memory a channel. What all results see through one tap of
    one channel is then that row, shifted: y[m, q] = sum over t of w[m, t] x[shift[t] + q], where t
    runs over channels and taps. So the matrix of windows is a choice of places in the sample, and
    a product reads it from there. Rows of results are as wide as the padded sample's; what is
    beyond the results' own width is computed too, and left behind when they are copied out.

    Inside, `ROWS` rows by `WIDE` vectors of results stay in registers over all t. The gradient of
    the weights sums over q instead: `ROWS` by `WIDE` sums of a vector each.

One text serves all: `tiles` says, for each sort of processor, how many numbers a vector holds and
how many of them its registers can keep.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tile:
    """What is kept in registers at a time."""

    suffix: str
    target: str  # the processors it is for, as compilers call them
    bytes: int  # of a vector
    rows: int
    wide: int
    high: int  # rows of a plain product, by two vectors


TILES = (
    Tile("v1", "", 16, 4, 2, 4),
    Tile("v3", 'target("arch=x86-64-v3")', 32, 4, 3, 4),
    Tile("v4", 'target("arch=x86-64-v4")', 64, 8, 3, 8),
)

_KERNEL = """
/* y[m, q] = sum over t of w[t, m] x[shift[t] + q]; w in blocks of ROWS, q up to a whole tile */
@TARGET static void shifted_@L_@V(
    const @T *w, const npy_intp *shift, npy_intp taps, const @T *x, @T *y, npy_intp blocks,
    npy_intp length, npy_intp wide)
{
    typedef @T vec __attribute__((vector_size(@BYTES), aligned(sizeof(@T))));
    for (npy_intp q = 0; q < length; q += @WIDE * @LANES)
        for (npy_intp b = 0; b < blocks; b++) {
            vec sum[@ROWS][@WIDE] = {{{0}}};
            const @T *factor = w + b * taps * @ROWS;
            for (npy_intp t = 0; t < taps; t++, factor += @ROWS) {
                const @T *from = x + shift[t] + q;
                vec seen[@WIDE];
                for (int j = 0; j < @WIDE; j++) seen[j] = *(const vec *)(from + j * @LANES);
                for (int i = 0; i < @ROWS; i++)
                    for (int j = 0; j < @WIDE; j++) sum[i][j] += factor[i] * seen[j];
            }
            for (int i = 0; i < @ROWS; i++)
                for (int j = 0; j < @WIDE; j++)
                    *(vec *)(y + (b * @ROWS + i) * wide + q + j * @LANES) = sum[i][j];
        }
}

/* total[m, t] += sum over q of g[m, q] x[shift[t] + q], for 4 by 4 of m and t at a time */
@TARGET static void common_@L_@V(
    const @T *g, npy_intp wide, npy_intp rows, const npy_intp *shift, npy_intp taps, const @T *x,
    npy_intp length, double *total)
{
    typedef @T vec __attribute__((vector_size(@BYTES), aligned(sizeof(@T))));
    for (npy_intp from = 0; from < length; from += 2048) {
        const npy_intp to = from + 2048 < length ? from + 2048 : length;
        for (npy_intp m = 0; m < rows; m += 4)
            for (npy_intp t = 0; t < taps; t += 4) {
                vec sum[4][4] = {{{0}}};
                for (npy_intp q = from; q < to; q += @LANES) {
                    vec a[4], b[4];
                    for (int i = 0; i < 4; i++) a[i] = *(const vec *)(g + (m + i) * wide + q);
                    for (int j = 0; j < 4; j++) b[j] = *(const vec *)(x + shift[t + j] + q);
                    for (int i = 0; i < 4; i++)
                        for (int j = 0; j < 4; j++) sum[i][j] += a[i] * b[j];
                }
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 4; j++) {
                        @T all = 0;
                        for (int k = 0; k < @LANES; k++) all += sum[i][j][k];
                        total[(m + i) * taps + t + j] += all;
                    }
            }
    }
}
"""

_PLAIN = """
/* c[i, :] (+)= sum over t of a[i * row + t * step] b[t, :], where `columns` are whole vectors; HIGH
   rows by two vectors are kept in registers */
@TARGET static inline __attribute__((always_inline)) void tile_@L_@V(
    const @T *a, npy_intp row, npy_intp step, const @T *b, npy_intp b_row, @T *c, npy_intp c_row,
    npy_intp inner, int rows, int vectors, int adds)
{
    typedef @T vec __attribute__((vector_size(@BYTES), aligned(sizeof(@T))));
    vec sum[@HIGH][2];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            sum[i][j] = adds ? *(const vec *)(c + i * c_row + j * @LANES) : (vec){0};
    for (npy_intp t = 0; t < inner; t++, a += step, b += b_row) {
        vec seen[2];
        for (int j = 0; j < vectors; j++) seen[j] = *(const vec *)(b + j * @LANES);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < vectors; j++) sum[i][j] += a[i * row] * seen[j];
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) *(vec *)(c + i * c_row + j * @LANES) = sum[i][j];
}

@TARGET static void product_@L_@V(
    const @T *a, npy_intp row, npy_intp step, const @T *b, npy_intp b_row, @T *c, npy_intp c_row,
    npy_intp rows, npy_intp inner, npy_intp columns, int adds)
{
    for (npy_intp j = 0; j < columns; j += 2 * @LANES)
        for (npy_intp i = 0; i < rows;) {
            const @T *from = a + i * row;
            @T *to = c + i * c_row + j;
            const int two = j + @LANES < columns;
            if (rows - i >= @HIGH && two)
                tile_@L_@V(from, row, step, b + j, b_row, to, c_row, inner, @HIGH, 2, adds);
            else if (rows - i >= @HIGH)
                tile_@L_@V(from, row, step, b + j, b_row, to, c_row, inner, @HIGH, 1, adds);
            else if (two) tile_@L_@V(from, row, step, b + j, b_row, to, c_row, inner, 1, 2, adds);
            else tile_@L_@V(from, row, step, b + j, b_row, to, c_row, inner, 1, 1, adds);
            i += rows - i >= @HIGH ? @HIGH : 1;
        }
}
"""

_CALLS = """
#define AXES 3
typedef struct {
    int axes;
    npy_intp samples, channels, rows, taps;       /* taps: of all channels, up to a whole block */
    npy_intp sizes[AXES], padded[AXES], before[AXES], kernel[AXES], outs[AXES], steps[AXES];
    npy_intp row;                                 /* places of a padded channel */
    npy_intp length, wide;                        /* of a row of results: used, and in memory */
    npy_intp *shift;
} Plan;

static int read_ints(PyObject *given, npy_intp *into, int count) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != count) return 0;
    for (int d = 0; d < count; d++) {
        into[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, d));
        if (into[d] == -1 && PyErr_Occurred()) { PyErr_Clear(); return 0; }
    }
    return 1;
}

/* The sizes of everything from those of the samples, the taps and the zeros around. */
static int plan_windows(Plan *plan, PyArrayObject *x, const npy_intp *kernel, npy_intp rows,
                        PyObject *before, PyObject *after, PyObject *dilation, int block)
{
    npy_intp end[AXES], apart[AXES];
    const int axes = PyArray_NDIM(x) - 2;
    if (axes < 1 || axes > AXES) return 0;
    if (!read_ints(before, plan->before, axes) || !read_ints(after, end, axes) || !read_ints(dilation, apart, axes))
        return 0;
    plan->axes = axes;
    plan->samples = PyArray_DIM(x, 0);
    plan->channels = PyArray_DIM(x, 1);
    plan->rows = rows;
    npy_intp step = 1, count = 1;
    plan->length = 1;
    for (int d = axes - 1; d >= 0; d--) {
        plan->kernel[d] = kernel[d];
        plan->sizes[d] = PyArray_DIM(x, d + 2);
        plan->padded[d] = plan->sizes[d] + plan->before[d] + end[d];
        plan->outs[d] = plan->padded[d] - apart[d] * (kernel[d] - 1);
        if (plan->before[d] < 0 || end[d] < 0 || plan->outs[d] < 1 || plan->sizes[d] < 1) return 0;
        plan->steps[d] = step;
        plan->length += (plan->outs[d] - 1) * step;
        step *= plan->padded[d];
        count *= kernel[d];
    }
    plan->row = step;
    const npy_intp taps = plan->channels * count;
    plan->taps = (taps + block - 1) / block * block;
    plan->shift = calloc(plan->taps + 1, sizeof(npy_intp));
    if (!plan->shift) return 0;
    for (npy_intp t = 0; t < taps; t++) {
        npy_intp rest = t % count, at = t / count * plan->row;
        for (int d = axes - 1; d >= 0; d--) {
            at += rest % kernel[d] * apart[d] * plan->steps[d];
            rest /= kernel[d];
        }
        plan->shift[t] = at;
    }
    return 1;
}

/* Copy rows of `sizes` into rows of `into`, whose steps are given, or back. */
static void copy_rows(const Plan *plan, const npy_intp *sizes, char *inside, char *outside,
                      npy_intp size, int out)
{
    npy_intp lines = 1, at[AXES] = {0};
    const int axes = plan->axes;
    const npy_intp bytes = sizes[axes - 1] * size;
    for (int d = 0; d < axes - 1; d++) lines *= sizes[d];
    for (npy_intp line = 0; line < lines; line++) {
        npy_intp place = 0;
        for (int d = 0; d < axes - 1; d++) place += at[d] * plan->steps[d];
        if (out) memcpy(outside, inside + place * size, bytes);
        else memcpy(inside + place * size, outside, bytes);
        outside += bytes;
        for (int d = axes - 2; d >= 0; d--) {
            if (++at[d] < sizes[d]) break;
            at[d] = 0;
        }
    }
}

static npy_intp first_place(const Plan *plan) {
    npy_intp place = 0;
    for (int d = 0; d < plan->axes; d++) place += plan->before[d] * plan->steps[d];
    return place;
}

static int plain(PyObject *x, int nd, int type) {
    if (!PyArray_CheckExact(x)) return 0;
    PyArrayObject *a = (PyArrayObject *)x;
    return PyArray_ISCARRAY_RO(a) && PyArray_NDIM(a) == nd && PyArray_TYPE(a) == type && PyArray_SIZE(a) > 0;
}

static int processor = 0; /* which of the sorts below runs here */

static void find_processor(void) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) processor = 1;
    if (processor && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd")) processor = 2;
#endif
}
"""

_TYPED = """
/* correlate(x, w, b, before, after, dilation): see Note [Shifted products] */
static PyObject *correlate_@L(PyArrayObject *x, PyArrayObject *w, PyObject *bias, PyObject *before,
                              PyObject *after, PyObject *dilation)
{
    static const struct { int rows, columns; void (*run)(const @T *, const npy_intp *, npy_intp,
        const @T *, @T *, npy_intp, npy_intp, npy_intp); } sorts[] = {@SHIFTED};
    const int block = sorts[processor].rows, tile = sorts[processor].columns;
    Plan plan;
    const npy_intp rows = PyArray_DIM(w, 0);
    if (!plan_windows(&plan, x, PyArray_DIMS(w) + 2, rows, before, after, dilation, 1)) Py_RETURN_NONE;
    const npy_intp blocks = (rows + block - 1) / block;
    plan.wide = (plan.length + tile - 1) / tile * tile;
    npy_intp dims[AXES + 2] = {plan.samples, rows};
    for (int d = 0; d < plan.axes; d++) dims[d + 2] = plan.outs[d];
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(plan.axes + 2, dims, PyArray_TYPE(x), 0);
    @T *packed = malloc(blocks * block * plan.taps * sizeof(@T));
    @T *sample = calloc(plan.channels * plan.row + tile, sizeof(@T));
    @T *found = malloc(blocks * block * plan.wide * sizeof(@T));
    if (y && packed && sample && found) {
        PyThreadState *saved = PyEval_SaveThread();
        const @T *factor = (const @T *)PyArray_DATA(w), *more = bias == Py_None ? NULL : (const @T *)PyArray_DATA((PyArrayObject *)bias);
        for (npy_intp m = 0; m < blocks * block; m++)
            for (npy_intp t = 0; t < plan.taps; t++)
                packed[m / block * plan.taps * block + t * block + m % block] =
                    m < rows ? factor[m * plan.taps + t] : 0;
        npy_intp size = 1, places = 1;
        for (int d = 0; d < plan.axes; d++) { size *= plan.sizes[d]; places *= plan.outs[d]; }
        char *from = PyArray_BYTES(x), *to = PyArray_BYTES(y);
        for (npy_intp s = 0; s < plan.samples; s++) {
            for (npy_intp c = 0; c < plan.channels; c++, from += size * sizeof(@T))
                copy_rows(&plan, plan.sizes, (char *)(sample + c * plan.row + first_place(&plan)), from, sizeof(@T), 0);
            sorts[processor].run(packed, plan.shift, plan.taps, sample, found, blocks, plan.length, plan.wide);
            for (npy_intp m = 0; m < rows; m++, to += places * sizeof(@T)) {
                copy_rows(&plan, plan.outs, (char *)(found + m * plan.wide), to, sizeof(@T), 1);
                if (more) {
                    @T *line = (@T *)to;
                    const @T add = more[m];
                    for (npy_intp q = 0; q < places; q++) line[q] += add;
                }
            }
        }
        PyEval_RestoreThread(saved);
    } else {
        Py_XDECREF(y);
        y = (PyArrayObject *)PyErr_NoMemory();
    }
    free(packed); free(sample); free(found); free(plan.shift);
    return (PyObject *)y;
}

/* correlate_weight(g, x, kernel, before, after, dilation), likewise */
static PyObject *correlate_weight_@L(PyArrayObject *g, PyArrayObject *x, PyObject *kernel, PyObject *before,
                                     PyObject *after, PyObject *dilation)
{
    static void (*const sorts[])(const @T *, npy_intp, npy_intp, const npy_intp *, npy_intp, const @T *,
        npy_intp, double *) = {@COMMON};
    Plan plan;
    npy_intp taps[AXES];
    const npy_intp rows = PyArray_DIM(g, 1), whole = (rows + 3) / 4 * 4;
    const int axes = PyArray_NDIM(x) - 2;
    if (axes < 1 || axes > AXES || !read_ints(kernel, taps, axes)) Py_RETURN_NONE;
    if (PyArray_DIM(g, 0) != PyArray_DIM(x, 0)) Py_RETURN_NONE;
    if (!plan_windows(&plan, x, taps, rows, before, after, dilation, 4)) Py_RETURN_NONE;
    npy_intp dims[AXES + 2] = {rows, plan.channels}, count = plan.channels, places = 1, size = 1;
    for (int d = 0; d < axes; d++) {
        if (PyArray_DIM(g, d + 2) != plan.outs[d]) { free(plan.shift); Py_RETURN_NONE; }
        dims[d + 2] = taps[d];
        count *= taps[d];
        places *= plan.outs[d];
        size *= plan.sizes[d];
    }
    plan.wide = (plan.length + 63) / 64 * 64;
    PyArrayObject *made = (PyArrayObject *)PyArray_EMPTY(axes + 2, dims, PyArray_TYPE(x), 0);
    double *total = calloc(whole * plan.taps, sizeof(double));
    @T *sample = calloc(plan.channels * plan.row + 64, sizeof(@T));
    @T *lines = calloc(whole * plan.wide, sizeof(@T));
    if (made && total && sample && lines) {
        PyThreadState *saved = PyEval_SaveThread();
        char *from = PyArray_BYTES(x), *given = PyArray_BYTES(g);
        for (npy_intp s = 0; s < plan.samples; s++) {
            for (npy_intp c = 0; c < plan.channels; c++, from += size * sizeof(@T))
                copy_rows(&plan, plan.sizes, (char *)(sample + c * plan.row + first_place(&plan)), from, sizeof(@T), 0);
            for (npy_intp m = 0; m < rows; m++, given += places * sizeof(@T))
                copy_rows(&plan, plan.outs, (char *)(lines + m * plan.wide), given, sizeof(@T), 0);
            sorts[processor](lines, plan.wide, whole, plan.shift, plan.taps, sample, plan.length, total);
        }
        @T *to = (@T *)PyArray_DATA(made);
        for (npy_intp m = 0; m < rows; m++)
            for (npy_intp t = 0; t < count; t++) to[m * count + t] = (@T)total[m * plan.taps + t];
        PyEval_RestoreThread(saved);
    } else {
        Py_XDECREF(made);
        made = (PyArrayObject *)PyErr_NoMemory();
    }
    free(total); free(sample); free(lines); free(plan.shift);
    return (PyObject *)made;
}
"""

_ENTRIES = """
static PyObject *correlate(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 6 || !PyArray_CheckExact(args[0])) Py_RETURN_NONE;
    const int nd = PyArray_NDIM((PyArrayObject *)args[0]), type = PyArray_TYPE((PyArrayObject *)args[0]);
    if (!plain(args[0], nd, type) || !plain(args[1], nd, type)) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0], *w = (PyArrayObject *)args[1];
    if (nd < 3 || PyArray_DIM(x, 1) != PyArray_DIM(w, 1)) Py_RETURN_NONE;
    if (args[2] != Py_None && !(plain(args[2], 1, type) && PyArray_DIM((PyArrayObject *)args[2], 0) == PyArray_DIM(w, 0)))
        Py_RETURN_NONE;
    if (type == NPY_FLOAT) return correlate_f(x, w, args[2], args[3], args[4], args[5]);
    if (type == NPY_DOUBLE) return correlate_d(x, w, args[2], args[3], args[4], args[5]);
    Py_RETURN_NONE;
}

static PyObject *correlate_weight(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 6 || !PyArray_CheckExact(args[0])) Py_RETURN_NONE;
    const int nd = PyArray_NDIM((PyArrayObject *)args[0]), type = PyArray_TYPE((PyArrayObject *)args[0]);
    if (nd < 3 || !plain(args[0], nd, type) || !plain(args[1], nd, type)) Py_RETURN_NONE;
    PyArrayObject *g = (PyArrayObject *)args[0], *x = (PyArrayObject *)args[1];
    if (type == NPY_FLOAT) return correlate_weight_f(g, x, args[2], args[3], args[4], args[5]);
    if (type == NPY_DOUBLE) return correlate_weight_d(g, x, args[2], args[3], args[4], args[5]);
    Py_RETURN_NONE;
}
"""

METHODS = """
    {"correlate", (PyCFunction)(void (*)(void))correlate, METH_FASTCALL,
     "correlate(x, w, b, before, after, dilation): a convolution that moves by 1, or None."},
    {"correlate_weight", (PyCFunction)(void (*)(void))correlate_weight, METH_FASTCALL,
     "correlate_weight(g, x, kernel, before, after, dilation): its gradient by the weight, or None."},
"""


def _fill(text: str, letter: str, tile: Tile | None = None, **more: str) -> str:
    name, size = ("float", 4) if letter == "f" else ("double", 8)
    words = {"T": name, "L": letter, **more}
    if tile is not None:
        target = f"__attribute__(({tile.target}))" if tile.target else ""
        words |= {
            "V": tile.suffix, "TARGET": target, "BYTES": str(tile.bytes),
            "LANES": str(tile.bytes // size), "ROWS": str(tile.rows), "WIDE": str(tile.wide),
            "HIGH": str(tile.high),
        }  # fmt: skip
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(f"@{word}", words[word])
    return text


def c_products() -> str:
    """The C of all of it."""
    parts = ["#pragma GCC push_options"]
    # Sums of products, which no rule writes out: here products may be added without rounding.
    parts.append('#pragma GCC optimize ("O3,fp-contract=fast")')
    for letter in "fd":
        for i, tile in enumerate(TILES):
            body = _fill(_KERNEL + _PLAIN, letter, tile)
            if i:
                body = f"#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__){body}#endif"
            parts.append(body)
    parts += ["#pragma GCC pop_options", _CALLS]
    for letter, size in (("f", 4), ("d", 8)):
        shifted, common = [], []
        for i, tile in enumerate(TILES):
            begin, end = ("X86(", ")") if i else ("", "")
            columns = tile.wide * tile.bytes // size
            shifted.append(
                f"{begin}{{{tile.rows}, {columns}, shifted_{letter}_{tile.suffix}}},{end}"
            )
            common.append(f"{begin}common_{letter}_{tile.suffix},{end}")
        parts.append(_fill(_TYPED, letter, SHIFTED=" ".join(shifted), COMMON=" ".join(common)))
    return "\n".join([*parts, _ENTRIES])
