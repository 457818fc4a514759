"""Public functions as C: a callable that hands common calls to compiled code at once.

Note [Public functions]
    A function of the op table is a Python function that looks at its arguments, chooses an op and
    applies it. `PublicFunction(fn, kind, ask, what, blame, tensor)` stands in its place. Called, it
    first asks compiled code (`ask`, of `core.dispatch` or `core.recall`), which gives the result,
    or None for what it leaves to `fn`. So a common call runs no interpreted frame. An error of
    `ask` is shown to `blame(error, args, kwargs)`, which raises a better one, gives a result in its
    place, or NotImplemented: then the error stands.

    kind 1: `ask(what, a)` of one tensor; 2: `ask(what, a, b)` of two; 3: `ask(what, args, kwargs)`.

    In everything else it is `fn`: all attributes are, and those that are set are set there. Whoever
    exchanges the code of `fn` (`fn.__code__ = ...`: `ops.overriding`, `amp.casting`) takes over all
    calls, since compiled code is asked only while `fn` has the code that it was made with.
"""

from __future__ import annotations

PUBLIC_FUNCTION = r"""
/* --- public functions: see rushlight.codegen.public_function --- */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int kind;
    PyObject *fn, *code, *ask, *what, *blame, *tensor, *weak;
} PublicFunction;

static PyObject *no_keywords; /* an empty dict, which nobody writes into */

static PyObject *keywords_of(PyObject *const *values, PyObject *names) {
    if (names == NULL || PyTuple_GET_SIZE(names) == 0) {
        Py_INCREF(no_keywords);
        return no_keywords;
    }
    PyObject *found = PyDict_New();
    for (Py_ssize_t k = 0; found && k < PyTuple_GET_SIZE(names); k++)
        if (PyDict_SetItem(found, PyTuple_GET_ITEM(names, k), values[k]) < 0) Py_CLEAR(found);
    return found;
}

static PyObject *tuple_of(PyObject *const *args, Py_ssize_t count) {
    PyObject *found = PyTuple_New(count);
    for (Py_ssize_t k = 0; found && k < count; k++) {
        Py_INCREF(args[k]);
        PyTuple_SET_ITEM(found, k, args[k]);
    }
    return found;
}

/* After an error of `ask`: what is given in its place, or NULL with an error. */
static PyObject *blame_for(PublicFunction *f, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *type, *value, *trace, *answer = NULL;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    PyObject *given = tuple_of(args, count), *named = keywords_of(args + count, names);
    if (given && named) {
        PyObject *stack[] = {value, given, named};
        answer = PyObject_Vectorcall(f->blame, stack, 3, NULL);
    }
    Py_XDECREF(given);
    Py_XDECREF(named);
    if (answer == Py_NotImplemented) { /* the error stands, with the traceback that it has now */
        Py_CLEAR(answer);
        Py_XDECREF(trace);
        trace = PyException_GetTraceback(value);
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return answer;
}

static PyObject *call_public(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    PublicFunction *f = (PublicFunction *)self;
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    PyObject *y = Py_None;
    if (PyFunction_GET_CODE(f->fn) == f->code) {
        if (f->kind == 3) {
            PyObject *given = tuple_of(args, count), *named = keywords_of(args + count, names);
            PyObject *stack[] = {f->what, given, named};
            y = given && named ? PyObject_Vectorcall(f->ask, stack, 3, NULL) : NULL;
            Py_XDECREF(given);
            Py_XDECREF(named);
        } else if (count == f->kind && names == NULL && PyObject_TypeCheck(args[0], (PyTypeObject *)f->tensor)) {
            if (count == 1) {
                PyObject *stack[] = {f->what, args[0]};
                y = PyObject_Vectorcall(f->ask, stack, 2, NULL);
            } else if (PyObject_TypeCheck(args[1], (PyTypeObject *)f->tensor)) {
                PyObject *stack[] = {f->what, args[0], args[1]};
                y = PyObject_Vectorcall(f->ask, stack, 3, NULL);
            } else
                Py_INCREF(y);
        } else
            Py_INCREF(y);
        if (y == NULL) return blame_for(f, args, count, names);
        if (y != Py_None) return y;
        Py_DECREF(y);
    }
    return PyObject_Vectorcall(f->fn, args, nargsf, names);
}

static PyObject *new_public(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *fn, *ask, *what, *blame, *tensor;
    int kind;
    if (!PyArg_ParseTuple(args, "O!iOOOO!:PublicFunction", &PyFunction_Type, &fn, &kind, &ask, &what, &blame, &PyType_Type, &tensor)) return NULL;
    if (kind < 1 || kind > 3) {
        PyErr_Format(PyExc_ValueError, "there is no kind %d", kind);
        return NULL;
    }
    PublicFunction *f = (PublicFunction *)type->tp_alloc(type, 0);
    if (f == NULL) return NULL;
    f->call = call_public;
    f->kind = kind;
    Py_INCREF(f->fn = fn);
    Py_INCREF(f->code = PyFunction_GET_CODE(fn));
    Py_INCREF(f->ask = ask);
    Py_INCREF(f->what = what);
    Py_INCREF(f->blame = blame);
    Py_INCREF(f->tensor = tensor);
    return (PyObject *)f;
}

static int traverse_public(PyObject *self, visitproc visit, void *arg) {
    PublicFunction *f = (PublicFunction *)self;
    Py_VISIT(f->fn);
    Py_VISIT(f->code);
    Py_VISIT(f->ask);
    Py_VISIT(f->what);
    Py_VISIT(f->blame);
    Py_VISIT(f->tensor);
    return 0;
}

static int clear_public(PyObject *self) {
    PublicFunction *f = (PublicFunction *)self;
    Py_CLEAR(f->fn);
    Py_CLEAR(f->code);
    Py_CLEAR(f->ask);
    Py_CLEAR(f->what);
    Py_CLEAR(f->blame);
    Py_CLEAR(f->tensor);
    return 0;
}

static void free_public(PyObject *self) {
    PyObject_GC_UnTrack(self);
    if (((PublicFunction *)self)->weak) PyObject_ClearWeakRefs(self);
    clear_public(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *bind_public(PyObject *self, PyObject *object, PyObject *type) {
    if (object == NULL || object == Py_None) {
        Py_INCREF(self);
        return self;
    }
    return PyMethod_New(self, object);
}

/* What the type has, and all else from the function. */
static PyObject *get_of_public(PyObject *self, PyObject *name) {
    PyObject *own = PyObject_GenericGetAttr(self, name);
    if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
    PyErr_Clear();
    PyObject *fn = ((PublicFunction *)self)->fn, *found = PyObject_GetAttr(fn, name);
    if (found || PyUnicode_CompareWithASCIIString(name, "__wrapped__") != 0) return found;
    PyErr_Clear(); /* `inspect` looks for the source there */
    Py_INCREF(fn);
    return fn;
}

static PyObject *doc_of_public(PyObject *self, void *none) { /* every type has one of its own */
    return PyObject_GetAttrString(((PublicFunction *)self)->fn, "__doc__");
}

static PyGetSetDef public_getset[] = {
    {"__doc__", doc_of_public, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}
};

static int set_of_public(PyObject *self, PyObject *name, PyObject *value) {
    return PyObject_SetAttr(((PublicFunction *)self)->fn, name, value);
}

static PyObject *show_public(PyObject *self) {
    return PyObject_Repr(((PublicFunction *)self)->fn);
}

static PyObject *reduce_public(PyObject *self, PyObject *none) { /* found by its name, as functions are */
    return PyObject_GetAttrString(((PublicFunction *)self)->fn, "__qualname__");
}

static PyMethodDef public_methods[] = {
    {"__reduce__", reduce_public, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}
};

static PyTypeObject PublicFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._kernels.PublicFunction",
    .tp_basicsize = sizeof(PublicFunction),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall_offset = offsetof(PublicFunction, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = new_public,
    .tp_traverse = traverse_public,
    .tp_clear = clear_public,
    .tp_dealloc = free_public,
    .tp_descr_get = bind_public,
    .tp_getattro = get_of_public,
    .tp_setattro = set_of_public,
    .tp_weaklistoffset = offsetof(PublicFunction, weak),
    .tp_methods = public_methods,
    .tp_getset = public_getset,
    .tp_repr = show_public,
};

static int add_public(PyObject *module) {
    no_keywords = PyDict_New();
    if (no_keywords == NULL || PyType_Ready(&PublicFunction_Type) < 0) return 0;
    Py_INCREF(&PublicFunction_Type);
    return PyModule_AddObject(module, "PublicFunction", (PyObject *)&PublicFunction_Type) == 0;
}
"""
