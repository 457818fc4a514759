"""Products of two matrices, or of two vectors, with a term to be added: NumPy's own `dot`, which asks
BLAS, called without a frame of Python around it. Small products take less time than such frames."""

from __future__ import annotations

C_MATRICES = """
static int is_real(PyObject *x, int type) {
    return PyArray_CheckExact(x) && PyArray_TYPE((PyArrayObject *)x) == type && PyArray_ISBEHAVED_RO((PyArrayObject *)x);
}

/* y + x, where y is a matrix in rows, and x such a matrix or one row */
#define ADD_TERM(T)                                                                               \\
    static void add_term_##T(PyArrayObject *y, PyArrayObject *x) {                                \\
        const npy_intp rows = PyArray_DIM(y, 0), n = PyArray_DIM(y, 1);                           \\
        const npy_intp right = PyArray_STRIDE(x, PyArray_NDIM(x) - 1);                            \\
        const npy_intp down = PyArray_NDIM(x) == 2 ? PyArray_STRIDE(x, 0) : 0;                    \\
        for (npy_intp i = 0; i < rows; i++) {                                                     \\
            T *restrict to = (T *)PyArray_DATA(y) + i * n;                                        \\
            const char *from = PyArray_BYTES(x) + i * down;                                       \\
            _Pragma("omp simd")                                                                   \\
            for (npy_intp j = 0; j < (right == sizeof(T) ? n : 0); j++) to[j] += ((const T *)from)[j]; \\
            for (npy_intp j = right == sizeof(T) ? n : 0; j < n; j++) to[j] += *(const T *)(from + j * right); \\
        }                                                                                         \\
    }
ADD_TERM(float) ADD_TERM(double)

/* multiplied(a, b) or multiplied(term, a, b): the product, and the term added to it */
static PyObject *multiplied(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count < 2 || count > 3 || !PyArray_CheckExact(args[0])) Py_RETURN_NONE;
    const int type = PyArray_TYPE((PyArrayObject *)args[0]);
    if (type != NPY_FLOAT && type != NPY_DOUBLE) Py_RETURN_NONE;
    for (int k = 0; k < count; k++) if (!is_real(args[k], type)) Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)args[count - 2], *b = (PyArrayObject *)args[count - 1];
    const int nd = PyArray_NDIM(a);
    if (nd != 2 || PyArray_NDIM(b) != 2 || PyArray_DIM(a, 1) != PyArray_DIM(b, 0)) Py_RETURN_NONE;
    if (PyArray_DIM(b, 1) >= @WIDE) Py_RETURN_NONE; /* there is more than one way */
    if (count == 3) {
        PyArrayObject *x = (PyArrayObject *)args[0];
        const int axes = PyArray_NDIM(x);
        if (axes < 1 || axes > 2 || PyArray_DIM(x, axes - 1) != PyArray_DIM(b, 1)) Py_RETURN_NONE;
        if (axes == 2 && PyArray_DIM(x, 0) != PyArray_DIM(a, 0)) Py_RETURN_NONE;
    }
    PyArrayObject *y = (PyArrayObject *)PyArray_MatrixProduct((PyObject *)a, (PyObject *)b);
    if (y == NULL || count == 2) return (PyObject *)y;
    if (type == NPY_FLOAT) add_term_float(y, (PyArrayObject *)args[0]);
    else add_term_double(y, (PyArrayObject *)args[0]);
    return (PyObject *)y;
}

/* multiplied_vectors(a, b): the sum of the products of their elements */
static PyObject *multiplied_vectors(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyArray_CheckExact(args[0])) Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    const int type = PyArray_TYPE(a);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !is_real(args[0], type) || !is_real(args[1], type)) Py_RETURN_NONE;
    if (PyArray_NDIM(a) != 1 || PyArray_NDIM(b) != 1 || PyArray_DIM(a, 0) != PyArray_DIM(b, 0)) Py_RETURN_NONE;
    return PyArray_MatrixProduct(args[0], args[1]);
}
"""

METHODS = """
    {"multiplied", (PyCFunction)(void (*)(void))multiplied, METH_FASTCALL,
     "multiplied([term,] a, b): the product of two matrices, or None."},
    {"multiplied_vectors", (PyCFunction)(void (*)(void))multiplied_vectors, METH_FASTCALL,
     "multiplied_vectors(a, b): the product of two vectors, or None."},
"""


def c_matrices(wide: int) -> str:
    """The C of it; right factors of `wide` columns and more are left to `arrays.vocabulary`."""
    return C_MATRICES.replace("@WIDE", str(wide))
