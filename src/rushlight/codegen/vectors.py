"""Vector products as C: of arrays that lie row by row, along an axis of size 3."""

from __future__ import annotations

_TEXT = """
/* --- vector products: see rushlight.codegen.vectors --- */
#define CROSSES(T)                                                                                \\
    CLONES static void cross_##T(const void *one, const void *two, void *made, npy_intp rows, npy_intp inner) { \\
        const T *a = one, *b = two;                                                               \\
        T *y = made;                                                                              \\
        for (npy_intp r = 0; r < rows; r++, a += 3 * inner, b += 3 * inner, y += 3 * inner)       \\
            for (npy_intp i = 0; i < inner; i++) {                                                \\
                const T a0 = a[i], a1 = a[inner + i], a2 = a[2 * inner + i];                      \\
                const T b0 = b[i], b1 = b[inner + i], b2 = b[2 * inner + i];                      \\
                y[i] = a1 * b2 - a2 * b1;                                                         \\
                y[inner + i] = a2 * b0 - a0 * b2;                                                 \\
                y[2 * inner + i] = a0 * b1 - a1 * b0;                                             \\
            }                                                                                     \\
    }
CROSSES(float) CROSSES(double)

/* The product along an axis; NULL without an error if these are no such arrays. */
static PyObject *cross_of(PyObject *axis_given, PyObject *one, PyObject *two) {
    PyArrayObject *a = movable(one), *b = movable(two);
    if (a == NULL || b == NULL || PyArray_NDIM(a) == 0 || !same_sizes(a, b, -1)) return NULL;
    const int axis = axis_of(axis_given, PyArray_NDIM(a)), type = PyArray_TYPE(a);
    if (axis < 0 || PyArray_DIM(a, axis) != 3 || (type != NPY_FLOAT && type != NPY_DOUBLE)) return NULL;
    if (!PyArray_IS_C_CONTIGUOUS(a) || !PyArray_IS_C_CONTIGUOUS(b)) return NULL;
    PyArrayObject *y = new_rows(a, PyArray_NDIM(a), PyArray_DIMS(a));
    if (y == NULL || PyArray_SIZE(a) == 0) return (PyObject *)y;
    const npy_intp inner = PyArray_STRIDE(y, axis) / PyArray_ITEMSIZE(y), rows = PyArray_SIZE(y) / (3 * inner);
    (type == NPY_FLOAT ? cross_float : cross_double)(PyArray_DATA(a), PyArray_DATA(b), PyArray_DATA(y), rows, inner);
    return (PyObject *)y;
}

/* crossed(axis, a, b) */
static PyObject *crossed(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *y = count == 3 ? cross_of(args[0], args[1], args[2]) : NULL;
    if (y == NULL && !PyErr_Occurred()) Py_RETURN_NONE;
    return y;
}

/* crossed_back(axis, wanted, g, a, b): the gradients b x g and g x a, of those that are wanted (bits) */
static PyObject *crossed_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 5) Py_RETURN_NONE;
    const long wanted = PyLong_AsLong(args[1]);
    if (wanted == -1 && PyErr_Occurred()) return NULL;
    PyObject *made[2] = {NULL, NULL};
    for (int k = 0; k < 2; k++) {
        if (!(wanted >> k & 1)) Py_INCREF(made[k] = Py_None);
        else made[k] = k == 0 ? cross_of(args[0], args[4], args[2]) : cross_of(args[0], args[2], args[3]);
        if (made[k] == NULL) {
            if (k == 1) Py_DECREF(made[0]);
            if (PyErr_Occurred()) return NULL;
            Py_RETURN_NONE;
        }
    }
    return Py_BuildValue("NN", made[0], made[1]);
}
"""

METHODS = "".join(
    f'    {{"{n}", (PyCFunction)(void (*)(void)){n}, METH_FASTCALL, NULL}},\n'
    for n in ("crossed", "crossed_back")
)


def c_vectors() -> str:
    """The C of all of it, which stands behind that of `codegen.moves`."""
    return _TEXT
