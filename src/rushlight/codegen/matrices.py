"""Products of two matrices, or of two vectors, with a term to be added: NumPy's own, which asks BLAS,
called without a frame of Python around it. Small products take less time than such frames.

Note [A batch times a weight]
    For a small batch X a layer's X Wᵀ takes OpenBLAS longer than the transposed product, W Xᵀ,
    which takes half to nine tenths of the time (8 to 128 rows, 784 x 256, in float32), with Xᵀ
    copied into rows. So that one is made, and turned when the bias is added.

Note [A right factor in columns]
    OpenBLAS takes longer over a right factor that lies in columns, as the transpose of a weight
    does: of 32 rows and more, in float32, a copy in rows and the product of that take seven to
    nineteen twentieths of the time, up to 100,000 elements or so.
"""

from __future__ import annotations

C_MATRICES = """
#define LARGE_PRODUCT 8192 /* elements */
static PyObject *numpy_matmul;

static int find_matmul(void) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    numpy_matmul = numpy ? PyObject_GetAttrString(numpy, "matmul") : NULL;
    Py_XDECREF(numpy);
    return numpy_matmul != NULL;
}

static int is_real(PyObject *x, int type) {
    return PyArray_CheckExact(x) && PyArray_TYPE((PyArrayObject *)x) == type && PyArray_ISBEHAVED_RO((PyArrayObject *)x);
}

/* Add x to `some` rows of y from `first` on; y is a matrix in rows, x such a matrix or one row. */
#define ADD_TERM(T)                                                                               \\
    static void add_term_##T(PyArrayObject *y, PyArrayObject *x, npy_intp first, npy_intp some) { \\
        const npy_intp n = PyArray_DIM(y, 1);                                                     \\
        const npy_intp right = PyArray_STRIDE(x, PyArray_NDIM(x) - 1);                            \\
        const npy_intp down = PyArray_NDIM(x) == 2 ? PyArray_STRIDE(x, 0) : 0;                    \\
        for (npy_intp i = first; i < first + some; i++) {                                         \\
            T *restrict to = (T *)PyArray_DATA(y) + i * n;                                        \\
            const char *from = PyArray_BYTES(x) + i * down;                                       \\
            _Pragma("omp simd")                                                                   \\
            for (npy_intp j = 0; j < (right == sizeof(T) ? n : 0); j++) to[j] += ((const T *)from)[j]; \\
            for (npy_intp j = right == sizeof(T) ? n : 0; j < n; j++) to[j] += *(const T *)(from + j * right); \\
        }                                                                                         \\
    }
ADD_TERM(float) ADD_TERM(double)

/* A copy in rows of a matrix of float32 that lies in columns. */
static PyArrayObject *columns_in_rows(PyArrayObject *x) {
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(2, PyArray_DIMS(x), NPY_FLOAT, 0);
    const npy_intp rows = PyArray_DIM(x, 0), n = PyArray_DIM(x, 1);
    if (y) turn_u32(PyArray_BYTES(y), n * 4, PyArray_BYTES(x), rows * 4, rows, n);
    return y;
}

/* The product by NumPy. `dot` is half a microsecond quicker to call, but fills its result with zeros
   before BLAS writes it. */
static PyArrayObject *product_of(PyArrayObject *a, PyArrayObject *b) {
    PyObject *factors[] = {(PyObject *)a, (PyObject *)b}, *made, *copy = NULL;
    const npy_intp size = PyArray_SIZE(b);
    if (PyArray_TYPE(b) == NPY_FLOAT && PyArray_DIM(a, 0) >= 32 && size && size <= 1 << 17 && PyArray_IS_F_CONTIGUOUS(b) && !PyArray_IS_C_CONTIGUOUS(b)) {
        factors[1] = copy = (PyObject *)columns_in_rows(b); /* see Note [A right factor in columns] */
        if (copy == NULL) return NULL;
    }
    if (PyArray_DIM(a, 0) * PyArray_DIM(b, 1) < LARGE_PRODUCT) made = PyArray_MatrixProduct(factors[0], factors[1]);
    else made = PyObject_Vectorcall(numpy_matmul, factors, 2, NULL);
    Py_XDECREF(copy);
    return (PyArrayObject *)made;
}

/* Whether a product is that of a layer for a small batch: see Note [A batch times a weight]. */
static int is_batch_times_weight(PyArrayObject *a, PyArrayObject *b) {
    const npy_intp rows = PyArray_DIM(a, 0), columns = PyArray_DIM(b, 1);
    return PyArray_TYPE(a) == NPY_FLOAT && rows >= 8 && rows <= 128 && columns >= 128 && columns >= 2 * rows
        && PyArray_DIM(b, 0) >= 64 && PyArray_IS_C_CONTIGUOUS(a) && PyArray_IS_F_CONTIGUOUS(b);
}

/* a b + x, as the transpose of what bᵀ aᵀ gives; x may be NULL */
static PyArrayObject *transposed_product(PyArrayObject *a, PyArrayObject *b, PyArrayObject *x) {
    PyArrayObject *turned = NULL, *y = NULL;
    PyArrayObject *left = (PyArrayObject *)PyArray_Transpose(b, NULL), *across = (PyArrayObject *)PyArray_Transpose(a, NULL);
    PyArrayObject *right = across ? columns_in_rows(across) : NULL;
    PyArrayObject *made = left && right ? product_of(left, right) : NULL;
    if (made) turned = PyArray_GETCONTIGUOUS(made); /* itself, unless BLAS has ways of its own */
    npy_intp dims[2] = {PyArray_DIM(a, 0), PyArray_DIM(b, 1)};
    if (turned) y = (PyArrayObject *)PyArray_EMPTY(2, dims, NPY_FLOAT, 0);
    if (y)
        for (npy_intp i = 0; i < dims[0]; i += 16) { /* rows that are in the cache when x is added */
            const npy_intp some = dims[0] - i < 16 ? dims[0] - i : 16;
            turn_u32(PyArray_BYTES(y) + i * dims[1] * 4, dims[1] * 4, PyArray_BYTES(turned) + i * 4, dims[0] * 4, some, dims[1]);
            if (x) add_term_float(y, x, i, some);
        }
    Py_XDECREF(left);
    Py_XDECREF(across);
    Py_XDECREF(right);
    Py_XDECREF(made);
    Py_XDECREF(turned);
    return y;
}

static PyArrayObject *any_product(PyArrayObject *a, PyArrayObject *b) {
    return is_batch_times_weight(a, b) ? transposed_product(a, b, NULL) : product_of(a, b);
}

/* multiplied(a, b) or multiplied(term, a, b): the product, and the term added to it */
static PyObject *multiplied(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count < 2 || count > 3 || !PyArray_CheckExact(args[0])) Py_RETURN_NONE;
    const int type = PyArray_TYPE((PyArrayObject *)args[0]);
    if (type != NPY_FLOAT && type != NPY_DOUBLE) Py_RETURN_NONE;
    for (int k = 0; k < count; k++) if (!is_real(args[k], type)) Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)args[count - 2], *b = (PyArrayObject *)args[count - 1];
    PyArrayObject *x = count == 3 ? (PyArrayObject *)args[0] : NULL;
    if (PyArray_NDIM(a) != 2 || PyArray_NDIM(b) != 2 || PyArray_DIM(a, 1) != PyArray_DIM(b, 0)) Py_RETURN_NONE;
    if (x) {
        const int axes = PyArray_NDIM(x);
        if (axes < 1 || axes > 2 || PyArray_DIM(x, axes - 1) != PyArray_DIM(b, 1)) Py_RETURN_NONE;
        if (axes == 2 && PyArray_DIM(x, 0) != PyArray_DIM(a, 0)) Py_RETURN_NONE;
    }
    PyArrayObject *y = x && is_batch_times_weight(a, b) ? transposed_product(a, b, x) : any_product(a, b);
    if (y == NULL || x == NULL || is_batch_times_weight(a, b)) return (PyObject *)y;
    if (type == NPY_FLOAT) add_term_float(y, x, 0, PyArray_DIM(y, 0));
    else add_term_double(y, x, 0, PyArray_DIM(y, 0));
    return (PyObject *)y;
}

/* bᵀ, ready to be the right factor of a product: a small matrix is copied, since BLAS takes longer
   over a transposed right factor (64x64: 8.6 µs against 7.4) */
static PyArrayObject *right_factor(PyArrayObject *b) {
    PyArrayObject *turned = (PyArrayObject *)PyArray_Transpose(b, NULL);
    if (turned == NULL || PyArray_SIZE(b) > 4096) return turned;
    PyArrayObject *copy = (PyArrayObject *)PyArray_NewCopy(turned, NPY_CORDER);
    Py_DECREF(turned);
    return copy;
}

/* aᵀ b, or a bᵀ if `of_b`; or the transpose of bᵀ a, or of b aᵀ, for a result that lies in columns */
static PyObject *gradient_of_factor(PyArrayObject *a, PyArrayObject *b, int of_b, int in_columns) {
    PyArrayObject *turned, *y = NULL;
    if (of_b)
        turned = in_columns ? (PyArrayObject *)PyArray_Transpose(a, NULL) : right_factor(b);
    else
        turned = (PyArrayObject *)PyArray_Transpose(in_columns ? b : a, NULL);
    if (turned) {
        if (of_b) y = in_columns ? any_product(b, turned) : any_product(a, turned);
        else y = in_columns ? any_product(turned, a) : any_product(turned, b);
        Py_DECREF(turned);
    }
    if (y == NULL || !in_columns) return (PyObject *)y;
    PyObject *back = PyArray_Transpose(y, NULL);
    Py_DECREF(y);
    return back;
}

/* multiplied_back(columns, inputs, wanted, g, a, b): the gradients of a and b, of those that are
   wanted (bits); of three inputs the first is a term, whose gradient is g. See Note [Products of
   turned matrices] in `ops.matmul.mm` for `columns`. */
static PyObject *multiplied_back(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 6 || !PyArray_CheckExact(args[3])) Py_RETURN_NONE;
    const long columns = PyLong_AsLong(args[0]), inputs = PyLong_AsLong(args[1]), wanted = PyLong_AsLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    PyArrayObject *g = (PyArrayObject *)args[3], *factors[2] = {(PyArrayObject *)args[4], (PyArrayObject *)args[5]};
    const int type = PyArray_TYPE(g), first = (int)inputs - 2;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !is_real(args[3], type) || PyArray_NDIM(g) != 2 || first < 0) Py_RETURN_NONE;
    for (int k = 0; k < 2; k++) { /* a is kept for the gradient of b, and the other way round */
        if (!(wanted >> (first + 1 - k) & 1)) continue;
        if (!is_real(args[4 + k], type) || PyArray_NDIM(factors[k]) != 2) Py_RETURN_NONE;
        if (PyArray_DIM(factors[k], k) != PyArray_DIM(g, k)) Py_RETURN_NONE;
    }
    PyObject *found = PyTuple_New(inputs);
    if (found == NULL) return NULL;
    for (int k = 0; k < inputs; k++) {
        PyObject *made = Py_None;
        if (wanted >> k & 1) {
            if (k < first) Py_INCREF(made = args[3]);
            else if (k == first) made = gradient_of_factor(g, factors[1], 1, columns & 1);
            else made = gradient_of_factor(factors[0], g, 0, columns & 2);
        } else Py_INCREF(made);
        if (made == NULL) {
            Py_DECREF(found);
            return NULL;
        }
        PyTuple_SET_ITEM(found, k, made);
    }
    return found;
}

/* multiplied_batches(a, b): the products of two batches of matrices */
static PyObject *multiplied_batches(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyArray_CheckExact(args[0])) Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    const int type = PyArray_TYPE(a);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !is_real(args[0], type) || !is_real(args[1], type)) Py_RETURN_NONE;
    if (PyArray_NDIM(a) != 3 || PyArray_NDIM(b) != 3 || PyArray_DIM(a, 0) != PyArray_DIM(b, 0) || PyArray_DIM(a, 2) != PyArray_DIM(b, 1)) Py_RETURN_NONE;
    if (PyArray_DIM(a, 2) < 2) Py_RETURN_NONE; /* columns times rows: a product of elements is quicker */
    return PyObject_Vectorcall(numpy_matmul, args, 2, NULL);
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
    {"multiplied_back", (PyCFunction)(void (*)(void))multiplied_back, METH_FASTCALL,
     "multiplied_back(columns, inputs, wanted, g, a, b): the gradients of the factors, or None."},
    {"multiplied_batches", (PyCFunction)(void (*)(void))multiplied_batches, METH_FASTCALL,
     "multiplied_batches(a, b): the products of two batches of matrices, or None."},
    {"multiplied_vectors", (PyCFunction)(void (*)(void))multiplied_vectors, METH_FASTCALL,
     "multiplied_vectors(a, b): the product of two vectors, or None."},
"""
