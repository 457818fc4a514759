"""Views as C: another shape and other strides over the memory of an array.

Each function takes an array and what a public function was given, as it was given: Python's ints,
or tuples and lists of them. It gives the view; or None for whatever is not plain: arguments of
other types, numbers out of range, arrays of another kind. Then the public function looks at them.
Strides are PyTorch's, where axes have size 1 and NumPy's would be others.
"""

from __future__ import annotations

STRIDES = r"""
/* --- views: see rushlight.codegen.strides --- */
#define VIEW_AXES 16
typedef struct { int nd; npy_intp dims[VIEW_AXES], strides[VIEW_AXES]; char *data; } Shown;

static int start_view(PyObject *x, Shown *v) {
    if (!PyArray_CheckExact(x) || PyArray_NDIM((PyArrayObject *)x) > VIEW_AXES) return 0;
    PyArrayObject *a = (PyArrayObject *)x;
    v->nd = PyArray_NDIM(a);
    v->data = PyArray_BYTES(a);
    for (int d = 0; d < v->nd; d++) {
        v->dims[d] = PyArray_DIM(a, d);
        v->strides[d] = PyArray_STRIDE(a, d);
    }
    return 1;
}

static PyObject *end_view(PyObject *x, const Shown *v) {
    PyArrayObject *a = (PyArrayObject *)x;
    PyArray_Descr *descr = PyArray_DESCR(a);
    Py_INCREF(descr); /* which the new array takes */
    PyArrayObject *y = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, descr, v->nd, v->dims, v->strides, v->data, PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, NULL);
    if (y == NULL) return NULL;
    Py_INCREF(a);
    if (PyArray_SetBaseObject(y, x) < 0) {
        Py_DECREF(y);
        return NULL;
    }
    return (PyObject *)y;
}

/* A plain int that fits. */
static int read_int(PyObject *x, npy_intp *found) {
    int overflow;
    if (!PyLong_CheckExact(x)) return 0;
    *found = PyLong_AsLongLongAndOverflow(x, &overflow);
    return !overflow;
}

/* A dimension out of `count`, counted from the front. */
static int read_axis(PyObject *x, int count, int *found) {
    npy_intp d;
    if (!read_int(x, &d) || d < -count || d >= count) return 0;
    *found = (int)(d < 0 ? d + count : d);
    return 1;
}

/* Sizes: f(x, 2, 3), f(x, (2, 3)) or f(x, [2, 3]); how many, -1 if they are not plain. */
static int given_ints(PyObject *const *args, Py_ssize_t count, npy_intp *found) {
    if (count == 1 && (PyTuple_Check(args[0]) || PyList_CheckExact(args[0]))) {
        count = PySequence_Fast_GET_SIZE(args[0]);
        args = PySequence_Fast_ITEMS(args[0]);
    }
    if (count > VIEW_AXES) return -1;
    for (Py_ssize_t k = 0; k < count; k++)
        if (!read_int(args[k], &found[k])) return -1;
    return (int)count;
}

static PyObject *view_transpose(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Shown v;
    int a, b;
    if (count != 3 || !start_view(args[0], &v) || !read_axis(args[1], v.nd, &a) || !read_axis(args[2], v.nd, &b)) Py_RETURN_NONE;
    const npy_intp dim = v.dims[a], stride = v.strides[a];
    v.dims[a] = v.dims[b];
    v.strides[a] = v.strides[b];
    v.dims[b] = dim;
    v.strides[b] = stride;
    return end_view(args[0], &v);
}

static PyObject *view_permute(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Shown v, u;
    npy_intp order[VIEW_AXES];
    unsigned seen = 0;
    if (count < 2 || !start_view(args[0], &v) || given_ints(args + 1, count - 1, order) != v.nd) Py_RETURN_NONE;
    u = v;
    for (int d = 0; d < v.nd; d++) {
        const npy_intp from = order[d] < 0 ? order[d] + v.nd : order[d];
        if (from < 0 || from >= v.nd || seen >> from & 1) Py_RETURN_NONE;
        seen |= 1u << from;
        u.dims[d] = v.dims[from];
        u.strides[d] = v.strides[from];
    }
    return end_view(args[0], &u);
}

static void drop_axis(Shown *v, int axis) {
    v->nd--;
    for (int d = axis; d < v->nd; d++) {
        v->dims[d] = v->dims[d + 1];
        v->strides[d] = v->strides[d + 1];
    }
}

/* view_select(x, dim, index) */
static PyObject *view_select(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Shown v;
    int axis;
    npy_intp at;
    if (count != 3 || !start_view(args[0], &v) || !read_axis(args[1], v.nd, &axis) || !read_int(args[2], &at)) Py_RETURN_NONE;
    if (at < -v.dims[axis] || at >= v.dims[axis]) Py_RETURN_NONE;
    v.data += (at < 0 ? at + v.dims[axis] : at) * v.strides[axis];
    drop_axis(&v, axis);
    return end_view(args[0], &v);
}

/* view_slice(x, dim, start, stop, step): numbers as `slice.indices` gives them */
static PyObject *view_slice(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Shown v;
    int axis;
    npy_intp start, stop, step;
    if (count != 5 || !start_view(args[0], &v) || !read_axis(args[1], v.nd, &axis)) Py_RETURN_NONE;
    if (!read_int(args[2], &start) || !read_int(args[3], &stop) || !read_int(args[4], &step)) Py_RETURN_NONE;
    if (step < 1 || start < 0 || stop < start || stop > v.dims[axis] || start > v.dims[axis]) Py_RETURN_NONE;
    v.dims[axis] = stop > start ? (stop - start - 1) / step + 1 : 0;
    v.data += start * v.strides[axis];
    v.strides[axis] *= step;
    return end_view(args[0], &v);
}

/* view_unsqueeze(x, dim): the new axis is as if contiguous with what follows */
static PyObject *view_unsqueeze(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Shown v;
    int axis;
    if (count != 2 || !start_view(args[0], &v) || v.nd == VIEW_AXES || !read_axis(args[1], v.nd + 1, &axis)) Py_RETURN_NONE;
    const npy_intp stride = axis < v.nd ? v.dims[axis] * v.strides[axis] : PyArray_ITEMSIZE((PyArrayObject *)args[0]);
    for (int d = v.nd; d > axis; d--) {
        v.dims[d] = v.dims[d - 1];
        v.strides[d] = v.strides[d - 1];
    }
    v.nd++;
    v.dims[axis] = 1;
    v.strides[axis] = stride;
    return end_view(args[0], &v);
}

/* view_squeeze(x) or view_squeeze(x, dim): without axes of size 1 */
static PyObject *view_squeeze(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Shown v;
    int axis = -1;
    if (count < 1 || count > 2 || !start_view(args[0], &v) || (count == 2 && !read_axis(args[1], v.nd, &axis))) Py_RETURN_NONE;
    for (int d = v.nd - 1; d >= 0; d--)
        if (v.dims[d] == 1 && (axis < 0 || d == axis)) drop_axis(&v, d);
    return end_view(args[0], &v);
}

/* view_reshape(x, sizes): of an array that lies row by row and has elements; one size may be -1 */
static PyObject *view_reshape(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Shown v;
    int unknown = -1;
    npy_intp known = 1;
    if (count < 2 || !PyArray_CheckExact(args[0])) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const npy_intp size = PyArray_SIZE(x);
    if (!PyArray_IS_C_CONTIGUOUS(x) || size == 0) Py_RETURN_NONE;
    v.nd = given_ints(args + 1, count - 1, v.dims);
    if (v.nd < 0) Py_RETURN_NONE;
    for (int d = 0; d < v.nd; d++) {
        if (v.dims[d] == -1 && unknown < 0) unknown = d;
        else if (v.dims[d] < 1 || known > size / v.dims[d]) Py_RETURN_NONE;
        else known *= v.dims[d];
    }
    if (unknown >= 0) {
        if (size % known) Py_RETURN_NONE;
        v.dims[unknown] = size / known;
    } else if (known != size) Py_RETURN_NONE;
    npy_intp stride = PyArray_ITEMSIZE(x);
    for (int d = v.nd - 1; d >= 0; stride *= v.dims[d--]) v.strides[d] = stride;
    v.data = PyArray_BYTES(x);
    return end_view(args[0], &v);
}

/* view_expand(x, sizes): axes of size 1 repeated, and new ones in front, larger than 1; -1 keeps */
static PyObject *view_expand(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Shown v, u;
    if (count < 2 || !start_view(args[0], &v)) Py_RETURN_NONE;
    u.nd = given_ints(args + 1, count - 1, u.dims);
    u.data = v.data;
    const int lead = u.nd - v.nd;
    if (u.nd < 0 || lead < 0) Py_RETURN_NONE;
    for (int d = 0; d < u.nd; d++) {
        const npy_intp have = d < lead ? 1 : v.dims[d - lead], stride = d < lead ? 0 : v.strides[d - lead];
        if (d < lead ? u.dims[d] < 2 : u.dims[d] < -1) Py_RETURN_NONE;
        if (u.dims[d] == -1) u.dims[d] = have;
        if (u.dims[d] != have && have != 1) Py_RETURN_NONE;
        u.strides[d] = u.dims[d] == have ? stride : 0;
    }
    return end_view(args[0], &u);
}
"""

_NAMES = ("transpose", "permute", "select", "slice", "unsqueeze", "squeeze", "reshape", "expand")
METHODS = "".join(
    f'    {{"view_{name}", (PyCFunction)(void (*)(void))view_{name}, METH_FASTCALL, '
    f'"view_{name}: the view of an array, or None."}},\n'
    for name in _NAMES
)
