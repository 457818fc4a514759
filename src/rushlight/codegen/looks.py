"""Views at one step: how a view lies in memory, found once and then applied to any array that lies
as the first one did.

`look(source, shown)` remembers shape, strides and the place of the first element of both. Called
with an array that lies as `source` did, it gives the view of it that lies as `shown`; else None.
"""

from __future__ import annotations

LOOKS = """
#define LOOK_AXES 8
typedef struct { int nd; npy_intp dims[LOOK_AXES], strides[LOOK_AXES]; } Layout;
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Layout source, shown;
    npy_intp offset, unit; /* in bytes: of the first element, and the size of one */
    int writable;
} Look;

static int read_layout(PyArrayObject *a, Layout *found) {
    const int nd = PyArray_NDIM(a);
    if (nd > LOOK_AXES) return 0;
    found->nd = nd;
    for (int d = 0; d < nd; d++) {
        found->dims[d] = PyArray_DIM(a, d);
        found->strides[d] = PyArray_STRIDE(a, d);
    }
    return 1;
}

static PyObject *call_look(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Look *look = (Look *)self;
    if (PyVectorcall_NARGS(nargsf) != 1 || names != NULL || !PyArray_CheckExact(args[0])) Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)args[0];
    const int nd = look->source.nd;
    if (PyArray_NDIM(a) != nd || PyArray_ITEMSIZE(a) != look->unit) Py_RETURN_NONE;
    for (int d = 0; d < nd; d++)
        if (PyArray_DIM(a, d) != look->source.dims[d] || PyArray_STRIDE(a, d) != look->source.strides[d]) Py_RETURN_NONE;
    PyArray_Descr *descr = PyArray_DESCR(a);
    Py_INCREF(descr); /* which the new array takes */
    PyArrayObject *y = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, descr, look->shown.nd, look->shown.dims, look->shown.strides,
        PyArray_BYTES(a) + look->offset, look->writable ? PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE : 0, NULL);
    if (y == NULL) return NULL;
    Py_INCREF(a);
    if (PyArray_SetBaseObject(y, (PyObject *)a) < 0) {
        Py_DECREF(y);
        return NULL;
    }
    return (PyObject *)y;
}

static PyTypeObject Look_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._kernels.Look",
    .tp_basicsize = sizeof(Look),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Look, call),
    .tp_call = PyVectorcall_Call,
    .tp_doc = "A view of an array, by its shape and strides.",
};

static PyObject *make_look(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyArray_CheckExact(args[0]) || !PyArray_CheckExact(args[1])) Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)args[0], *y = (PyArrayObject *)args[1];
    Look *look = PyObject_New(Look, &Look_Type);
    if (look == NULL) return NULL;
    look->call = call_look;
    look->unit = PyArray_ITEMSIZE(a);
    look->offset = PyArray_BYTES(y) - PyArray_BYTES(a);
    look->writable = PyArray_ISWRITEABLE(y) || !PyArray_ISWRITEABLE(a);
    if (PyArray_ITEMSIZE(y) == look->unit && PyArray_TYPE(a) == PyArray_TYPE(y) && read_layout(a, &look->source)
        && read_layout(y, &look->shown)) return (PyObject *)look;
    Py_DECREF(look);
    Py_RETURN_NONE;
}
"""

METHODS = """
    {"look", (PyCFunction)(void (*)(void))make_look, METH_FASTCALL,
     "look(source, shown): a function that gives this view of any array that lies as the source."},
"""
