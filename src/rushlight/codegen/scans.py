"""Running sums and products along any axis, in C.

Note [Running sums]
    Sums are kept in the next wider type and rounded where they are written. Along the last axis one
    sum waits for the one before it; so four rows are added at a time, whose sums do not wait for
    each other. Along another axis the sums of many columns stand side by side. Arrays of 16 bits
    are widened first: Note [Half precision] in `halves`.
"""

from __future__ import annotations

_SCAN = """
typedef struct { const char *x; char *y; npy_intp n, inner; int product, reverse; } Scan_@L;

static void scan_rows_@L(const @T *x, @T *y, npy_intp n, int rows, int product, int reverse) {
    const @W start = product ? 1 : -0.0; /* which adds nothing even to a zero's sign */
    @W sum[4] = {start, start, start, start};
    const npy_intp step = reverse ? -1 : 1;
    if (reverse) { x += n - 1; y += n - 1; }
    for (npy_intp i = 0; i < n; i++, x += step, y += step)
        for (int r = 0; r < rows; r++) {
            sum[r] = product ? sum[r] * x[r * n] : sum[r] + x[r * n];
            y[r * n] = (@T)sum[r];
        }
}

static void work_scan_@L(void *given, npy_intp from, npy_intp to) {
    const Scan_@L *scan = given;
    const npy_intp n = scan->n, inner = scan->inner;
    const @T *x = (const @T *)scan->x;
    @T *y = (@T *)scan->y;
    if (inner == 1) {
        for (npy_intp row = from; row < to; row += 4) {
            const int rows = to - row < 4 ? (int)(to - row) : 4;
            /* the count is known where it can be: four sums then stay in registers */
            if (rows < 4 || n == 1)
                scan_rows_@L(x + row * n, y + row * n, n, rows, scan->product, scan->reverse);
            else if (scan->product) scan_rows_@L(x + row * n, y + row * n, n, 4, 1, scan->reverse);
            else scan_rows_@L(x + row * n, y + row * n, n, 4, 0, scan->reverse);
        }
        return;
    }
    for (npy_intp outer = from; outer < to; outer++)
        for (npy_intp first = 0; first < inner; first += 256) {
            const npy_intp w = first + 256 < inner ? 256 : inner - first;
            @W sum[256];
            for (npy_intp j = 0; j < w; j++) sum[j] = scan->product ? 1 : -0.0;
            for (npy_intp i = 0; i < n; i++) {
                const npy_intp at = outer * n + (scan->reverse ? n - 1 - i : i);
                const @T *a = x + at * inner + first;
                @T *b = y + at * inner + first;
                if (scan->product)
                    for (npy_intp j = 0; j < w; j++) b[j] = (@T)(sum[j] *= a[j]);
                else
                    for (npy_intp j = 0; j < w; j++) b[j] = (@T)(sum[j] += a[j]);
            }
        }
}
"""

_OTHERS = """
/* For each element the product of the others: those to its left times those to its right. */
INLINE void others_rows_@L(const @T *x, @T *y, npy_intp n, int rows, @W *left) {
    @W part[4] = {1, 1, 1, 1};
    for (npy_intp i = 0; i < n; i++)
        for (int r = 0; r < rows; r++) {
            left[i * rows + r] = part[r];
            part[r] *= x[r * n + i];
        }
    for (int r = 0; r < rows; r++) part[r] = 1;
    for (npy_intp i = n - 1; i >= 0; i--)
        for (int r = 0; r < rows; r++) {
            y[r * n + i] = (@T)(left[i * rows + r] * part[r]);
            part[r] *= x[r * n + i];
        }
}

static void work_others_@L(void *given, npy_intp from, npy_intp to) {
    const Scan_@L *scan = given;
    const @T *x = (const @T *)scan->x;
    @T *y = (@T *)scan->y;
    const npy_intp n = scan->n;
    @W *left = scratch(4 * n * sizeof(@W));
    for (npy_intp row = from; row < to; row += 4)
        if (to - row < 4) others_rows_@L(x + row * n, y + row * n, n, (int)(to - row), left);
        else others_rows_@L(x + row * n, y + row * n, n, 4, left);
}
"""

_ENTRY = """
/* products_of_others(x), along the last axis; None for what it is not made for */
static PyObject *products_of_others(PyObject *self, PyObject *given) {
    if (!PyArray_CheckExact(given)) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)given;
    const int nd = PyArray_NDIM(x), type = PyArray_TYPE(x);
    if (nd == 0 || !PyArray_ISCARRAY_RO(x) || PyArray_SIZE(x) == 0) Py_RETURN_NONE;
    if (type != NPY_FLOAT && type != NPY_DOUBLE) Py_RETURN_NONE;
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(nd, PyArray_DIMS(x), type, 0);
    if (y == NULL) return NULL;
    const npy_intp n = PyArray_DIM(x, nd - 1), size = PyArray_SIZE(x);
    if (type == NPY_FLOAT) {
        Scan_f scan = {PyArray_BYTES(x), PyArray_BYTES(y), n, 1, 1, 0};
        run_parts(work_others_f, &scan, size / n, 4, size);
    } else {
        Scan_d scan = {PyArray_BYTES(x), PyArray_BYTES(y), n, 1, 1, 0};
        run_parts(work_others_d, &scan, size / n, 4, size);
    }
    return (PyObject *)y;
}

/* running(product, reverse, axis, x): see Note [Running sums]; None for what it is not made for */
static PyObject *running(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !PyArray_CheckExact(args[3]) || !PyLong_Check(args[2])) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)args[3];
    const int nd = PyArray_NDIM(x), type = PyArray_TYPE(x);
    if (is_half(type)) return on_floats(running, self, args, count);
    int axis = (int)PyLong_AsLong(args[2]);
    if (axis < 0) axis += nd;
    if (axis < 0 || axis >= nd || (type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NONE;
    if (!PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x) || PyArray_SIZE(x) == 0) Py_RETURN_NONE;
    x = PyArray_GETCONTIGUOUS(x);
    if (x == NULL) return NULL;
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(nd, PyArray_DIMS(x), type, 0);
    if (y) {
        npy_intp outer = 1, inner = 1;
        for (int d = 0; d < axis; d++) outer *= PyArray_DIM(x, d);
        for (int d = axis + 1; d < nd; d++) inner *= PyArray_DIM(x, d);
        const int product = PyObject_IsTrue(args[0]), reverse = PyObject_IsTrue(args[1]);
        const npy_intp n = PyArray_DIM(x, axis), size = PyArray_SIZE(x);
        if (type == NPY_FLOAT) {
            Scan_f scan = {PyArray_BYTES(x), PyArray_BYTES(y), n, inner, product, reverse};
            run_parts(work_scan_f, &scan, outer, inner == 1 ? 4 : 1, size);
        } else {
            Scan_d scan = {PyArray_BYTES(x), PyArray_BYTES(y), n, inner, product, reverse};
            run_parts(work_scan_d, &scan, outer, inner == 1 ? 4 : 1, size);
        }
    }
    Py_DECREF(x);
    return (PyObject *)y;
}
"""

METHODS = """
    {"running", (PyCFunction)(void (*)(void))running, METH_FASTCALL,
     "running(product, reverse, axis, x): running sums or products, or None."},
    {"products_of_others", products_of_others, METH_O,
     "products_of_others(x): of each element's neighbours along the last axis, or None."},
"""


def c_scans() -> str:
    """The C of all of it."""
    parts = []
    for letter, kind, wide in (("f", "float", "double"), ("d", "double", "long double")):
        text = (_SCAN + _OTHERS).replace("@T", kind).replace("@L", letter).replace("@W", wide)
        # the rows' loop is to be written out for each way in which it is called
        parts.append(text.replace("static void scan_rows_", "INLINE void scan_rows_"))
    return "\n".join([*parts, _ENTRY])
