"""The user's line as C: where in its code the calling frame is. See `core.call_site`."""

from __future__ import annotations

CALL_SITE = """
/* --- call sites: see rushlight.codegen.call_site --- */
static PyObject *name_of_module; /* "__name__" */

static int is_rushlights(PyFrameObject *frame) {
    PyObject *globals = PyFrame_GetGlobals(frame);
    PyObject *name = PyDict_GetItemWithError(globals, name_of_module);
    Py_DECREF(globals);
    if (name == NULL || !PyUnicode_Check(name)) return 0;
    const char *text = PyUnicode_AsUTF8(name);
    return text && strncmp(text, "rushlight.", 10) == 0;
}

/* offset_in(code): the offset of the instruction that runs, if the innermost frame that is not
   rushlight's own runs this code; else None */
static PyObject *offset_in(PyObject *self, PyObject *code) {
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame) {
        PyCodeObject *runs = PyFrame_GetCode(frame);
        const int found = (PyObject *)runs == code, outward = !found && is_rushlights(frame);
        Py_DECREF(runs);
        const int offset = found ? PyFrame_GetLasti(frame) : 0;
        PyFrameObject *back = outward ? PyFrame_GetBack(frame) : NULL;
        Py_DECREF(frame);
        if (found) return PyLong_FromLong(offset);
        frame = back;
    }
    PyErr_Clear(); /* of a module whose name is no text */
    Py_RETURN_NONE;
}
"""

METHODS = """
    {"offset_in", (PyCFunction)offset_in, METH_O,
     "offset_in(code): the instruction that runs, if the user's innermost frame runs this code."},
"""
