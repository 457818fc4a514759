"""Borders of an array's own elements as C: reflected, repeated, or from the other end.

Each place of a padded axis comes from one of the axis: `margined` reads by such maps, one an axis,
and `unmargined`, its transpose, adds by them.
"""

from __future__ import annotations

_TEXT = """
/* --- margins: see rushlight.codegen.margins --- */
enum { REFLECT, REPLICATE, CIRCULAR };
typedef struct { int nd; npy_intp dims[8], outs[8], *maps[8]; } Margin;

/* Read what `widths` (before and after, from the last axis on) make of a shape; 0 if that is not for
   here. Axes without a border have no map. */
static int read_margin(Margin *m, PyObject *mode, PyObject *given, int nd, const npy_intp *shape) {
    npy_intp widths[MOST_AXES];
    const long how = PyLong_AsLong(mode);
    const int count = ints_of(given, widths);
    if (how < 0 || how > CIRCULAR || count < 0 || count % 2 || count / 2 > nd || nd > 8) return 0;
    m->nd = nd;
    for (int d = 0; d < nd; d++) {
        const int k = 2 * (nd - 1 - d);
        const npy_intp n = shape[d], before = k < count ? widths[k] : 0, after = k < count ? widths[k + 1] : 0;
        m->dims[d] = n;
        m->outs[d] = n + before + after;
        m->maps[d] = NULL;
        const npy_intp most = how == REFLECT ? n - 1 : how == CIRCULAR ? n : 1 << 30;
        if (n < 1 || m->outs[d] < 1 || before > most || after > most) return 0;
        if (how == CIRCULAR && (before < 0 || after < 0)) return 0;
    }
    for (int d = 0; d < nd; d++) {
        const int k = 2 * (nd - 1 - d);
        const npy_intp n = m->dims[d], before = k < count ? widths[k] : 0;
        npy_intp *map = m->maps[d] = malloc(m->outs[d] * sizeof(npy_intp));
        if (map == NULL) { while (d) free(m->maps[--d]); return 0; }
        for (npy_intp o = 0; o < m->outs[d]; o++) {
            npy_intp i = o - before;
            if (i < 0) i = how == REFLECT ? -i : how == CIRCULAR ? i + n : 0;
            else if (i >= n) i = how == REFLECT ? 2 * (n - 1) - i : how == CIRCULAR ? i - n : n - 1;
            map[o] = i;
        }
    }
    return 1;
}

/* DO for each line of the padded array: `line` is where it begins, `there` the line it comes from. */
#define EACH_LINE(T, PADDED, INNER, STRIDES, DO)                                                  \\
    {                                                                                             \\
        const int last = m.nd - 1;                                                                \\
        const npy_intp n = m.outs[last], *const map = m.maps[last];                               \\
        npy_intp at[8] = {0};                                                                     \\
        T *line = (T *)(PADDED);                                                                  \\
        for (int d = 0; d >= 0; line += n) {                                                      \\
            char *place = (INNER);                                                                \\
            for (int e = 0; e < last; e++) place += m.maps[e][at[e]] * (STRIDES)[e];              \\
            const npy_intp step = (STRIDES)[last];                                                \\
            for (npy_intp o = 0; o < n; o++) {                                                    \\
                T *const there = (T *)(place + map[o] * step);                                    \\
                DO;                                                                               \\
            }                                                                                     \\
            for (d = last - 1; d >= 0; d--) {                                                     \\
                if (++at[d] < m.outs[d]) break;                                                   \\
                at[d] = 0;                                                                        \\
            }                                                                                     \\
        }                                                                                         \\
    }

/* margined(mode, widths, x) */
static PyObject *margined(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Margin m;
    PyArrayObject *x = count == 3 ? movable(args[2]) : NULL;
    if (x == NULL || PyArray_NDIM(x) == 0) Py_RETURN_NONE;
    const npy_intp unit = PyArray_ITEMSIZE(x), *strides = PyArray_STRIDES(x);
    if (unit != 4 && unit != 8) Py_RETURN_NONE;
    if (!read_margin(&m, args[0], args[1], PyArray_NDIM(x), PyArray_DIMS(x))) { PyErr_Clear(); Py_RETURN_NONE; }
    PyArrayObject *y = new_rows(x, m.nd, m.outs);
    if (y) {
        PyThreadState *saved = begin_many(PyArray_NBYTES(y));
        if (unit == 4) EACH_LINE(u32, PyArray_BYTES(y), PyArray_BYTES(x), strides, line[o] = *there)
        else EACH_LINE(u64, PyArray_BYTES(y), PyArray_BYTES(x), strides, line[o] = *there)
        end_many(saved);
    }
    for (int d = 0; d < m.nd; d++) free(m.maps[d]);
    return (PyObject *)y;
}

/* unmargined(mode, widths, shape, g) */
static PyObject *unmargined(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Margin m;
    npy_intp shape[MOST_AXES];
    PyArrayObject *g = count == 4 ? movable(args[3]) : NULL;
    const int nd = g ? ints_of(args[2], shape) : -1, type = g ? PyArray_TYPE(g) : 0;
    if (nd < 1 || (type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NONE;
    if (!read_margin(&m, args[0], args[1], nd, shape)) { PyErr_Clear(); Py_RETURN_NONE; }
    PyArrayObject *y = NULL;
    const int fits = has_shape(args[3], nd, m.outs, type);
    if (fits && (y = (PyArrayObject *)PyArray_ZEROS(nd, shape, type, 0)) != NULL) {
        PyThreadState *saved = begin_many(PyArray_NBYTES(g));
        const npy_intp *strides = PyArray_STRIDES(y);
        if (type == NPY_FLOAT) EACH_LINE(float, PyArray_BYTES(g), PyArray_BYTES(y), strides, *there += line[o])
        else EACH_LINE(double, PyArray_BYTES(g), PyArray_BYTES(y), strides, *there += line[o])
        end_many(saved);
    }
    for (int d = 0; d < m.nd; d++) free(m.maps[d]);
    if (!fits) Py_RETURN_NONE;
    return (PyObject *)y;
}
"""

METHODS = "".join(
    f'    {{"{n}", (PyCFunction)(void (*)(void)){n}, METH_FASTCALL, NULL}},\n'
    for n in ("margined", "unmargined")
)


def c_margins() -> str:
    """The C of all of it, which stands behind that of `codegen.members`."""
    return _TEXT
