"""bfloat16 and float16 for every kernel, in C: computed in float32, rounded once.

Note [Half precision]
    A kernel has functions of float and of double. Arrays of 16 bits are widened, the kernel is run
    on what they became, and what it gives is rounded to their type, each number once: that is how
    PyTorch computes its reductions, its softmax and its gradients. All arrays must be of one such
    type; where float32 is among them the rule has to say what is rounded. What was widened lies as
    the array did, also along axes that repeat one number, so that results lie as those of float32.

    Arrays that lie row by row, which is the common case, are not widened as a whole: a block of
    elements, or some rows, are widened, computed and rounded while they are in the nearest cache.
"""

from __future__ import annotations

_ARRAYS = """
/* --- Note [Half precision] in rushlight.codegen.halves --- */
static int is_half(int type) { return type == NPY_HALF || (type == bfloat_type && type >= 0); }

typedef struct { cast_loop loop; const char *from; char *to; npy_intp from_unit, to_unit; } CastWork;

static void work_cast(void *given, npy_intp from, npy_intp to) {
    const CastWork *work = given;
    work->loop(work->from + from * work->from_unit, work->to + from * work->to_unit, to - from);
}

/* How many numbers lie in memory for an array whose axes, in some order, are in one piece or repeat
   one number; 0 for others. */
static npy_intp in_one_piece(PyArrayObject *x) {
    const npy_intp unit = PyArray_ITEMSIZE(x);
    npy_intp total = 1;
    if (PyArray_IS_C_CONTIGUOUS(x)) return PyArray_SIZE(x);
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (PyArray_STRIDE(x, d) != 0) total *= PyArray_DIM(x, d);
    for (npy_intp have = 1; have < total;) { /* the axis that goes on where the others end */
        int found = 0;
        for (int d = 0; d < PyArray_NDIM(x) && !found; d++)
            if (PyArray_DIM(x, d) > 1 && PyArray_STRIDE(x, d) == have * unit) {
                have *= PyArray_DIM(x, d);
                found = 1;
            }
        if (!found) return 0;
    }
    return total;
}

/* What an array's memory is with other sizes and strides; the reference is handed over. */
static PyObject *shown_as(PyArrayObject *memory, int nd, npy_intp *dims, npy_intp *strides) {
    PyObject *y = PyArray_New(&PyArray_Type, nd, dims, PyArray_TYPE(memory), strides, PyArray_DATA(memory), 0,
                              NPY_ARRAY_WRITEABLE, NULL);
    if (y == NULL) Py_DECREF(memory);
    else if (PyArray_SetBaseObject((PyArrayObject *)y, (PyObject *)memory) < 0) Py_CLEAR(y);
    return y;
}

/* A copy in one piece, in the order of its axes, that repeats what the array repeats. */
static PyArrayObject *copy_in_one_piece(PyArrayObject *x) {
    const int nd = PyArray_NDIM(x);
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    for (int d = 0; d < nd; d++) dims[d] = PyArray_STRIDE(x, d) == 0 ? 1 : PyArray_DIM(x, d);
    PyObject *once = PyArray_New(&PyArray_Type, nd, dims, PyArray_TYPE(x), PyArray_STRIDES(x), PyArray_DATA(x), 0, 0, NULL);
    if (once == NULL) return NULL;
    PyArrayObject *copy = (PyArrayObject *)PyArray_NewCopy((PyArrayObject *)once, NPY_KEEPORDER);
    Py_DECREF(once);
    if (copy == NULL) return NULL;
    for (int d = 0; d < nd; d++) strides[d] = PyArray_STRIDE(x, d) == 0 ? 0 : PyArray_STRIDE(copy, d);
    return (PyArrayObject *)shown_as(copy, nd, PyArray_DIMS(x), strides);
}

/* An array in another type, which lies as it does. */
static PyObject *cast_in_place_of(PyArrayObject *x, int type) {
    const cast_loop loop = cast_of(PyArray_TYPE(x), type);
    const npy_intp unit = PyArray_ITEMSIZE(x);
    npy_intp total = in_one_piece(x), strides[NPY_MAXDIMS];
    PyArrayObject *copy = NULL;
    if (total == 0) {
        x = copy = copy_in_one_piece(x);
        if (copy == NULL) return NULL;
        total = in_one_piece(x);
    }
    const int rows = PyArray_IS_C_CONTIGUOUS(x), nd = PyArray_NDIM(x);
    PyArrayObject *y = (PyArrayObject *)PyArray_EMPTY(rows ? nd : 1, rows ? PyArray_DIMS(x) : &total, type, 0);
    if (y) {
        const npy_intp its = PyArray_ITEMSIZE(y);
        CastWork work = {loop, PyArray_BYTES(x), PyArray_BYTES(y), unit, its};
        run_parts(work_cast, &work, total, BLOCK, total);
        for (int d = 0; d < nd; d++) strides[d] = PyArray_STRIDE(x, d) / unit * its;
        if (!rows) y = (PyArrayObject *)shown_as(y, nd, PyArray_DIMS(x), strides);
    }
    Py_XDECREF(copy);
    return (PyObject *)y;
}

/* What was made in float32, an array or several, in another type; the reference is handed over. */
static PyObject *narrowed(PyObject *made, int type) {
    if (made == NULL) return NULL;
    if (PyTuple_CheckExact(made)) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(made); k++) {
            PyObject *y = narrowed(PyTuple_GET_ITEM(made, k), type);
            PyTuple_SET_ITEM(made, k, y);
            if (y == NULL) {
                Py_DECREF(made);
                return NULL;
            }
        }
        return made;
    }
    if (!PyArray_CheckExact(made) || PyArray_TYPE((PyArrayObject *)made) != NPY_FLOAT) return made;
    PyObject *y = cast_in_place_of((PyArrayObject *)made, type);
    Py_DECREF(made);
    return y;
}

typedef PyObject *(*function_of_arrays)(PyObject *, PyObject *const *, Py_ssize_t);

/* A function that is made for floats, of arrays of 16 bits: what it gives is rounded to their type. */
static PyObject *on_floats(function_of_arrays run, PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *given[8], *held[8], *made;
    int type = -1, holds = 0;
    if (count > 8) Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < count; k++) {
        given[k] = args[k];
        if (!PyArray_CheckExact(args[k]) || !is_half(PyArray_TYPE((PyArrayObject *)args[k]))) continue;
        PyArrayObject *x = (PyArrayObject *)args[k];
        type = PyArray_TYPE(x);
        if (PyArray_SIZE(x) == 0 || !PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x)) {
            drop(held, holds);
            Py_RETURN_NONE;
        }
        given[k] = cast_in_place_of(x, NPY_FLOAT);
        if (given[k] == NULL) return drop(held, holds);
        held[holds++] = given[k];
    }
    made = run(self, given, count);
    drop(held, holds);
    return narrowed(made, type);
}
"""

_CALLS = """
#define HALF_BLOCK 2048  /* elements that are widened at a time, where rows are not longer */
#define HALF_ROW 32768   /* longer rows are widened as a whole array */

typedef struct {
    const Kernel *kernel;
    const double *params;
    cast_loop widen, narrow;
    npy_intp n, step;      /* elements of a row, 1 if there are none; rows at a time */
    char *in[@LIMIT], *out[@LIMIT];
} HalfWork;

/* How many elements an operand has for so many rows. */
static npy_intp elements_of(char kind, npy_intp rows, npy_intp n) {
    return kind == 'e' || kind == 'b' ? rows * n : kind == 'r' || kind == 'R' ? rows : kind == 'c' ? n : 1;
}

/* Rows (of kernels of elements: elements) from `from` to `to`, some at a time. */
static void work_halves(void *given, npy_intp from, npy_intp to) {
    const HalfWork *work = given;
    const Spec *spec = work->kernel->spec;
    const npy_intp n = work->n, room = (work->step * n + 15) / 16 * 16;
    static _Thread_local float *memory;
    static _Thread_local size_t size;
    char *in[@LIMIT], *out[@LIMIT], *next;
    size_t rooms = strlen(spec->inputs) + strlen(spec->outputs);
    if (rooms * room * sizeof(float) > size) {
        free(memory);
        size = rooms * room * sizeof(float);
        memory = malloc(size);
        if (memory == NULL) Py_FatalError("rushlight: no memory for a row");
    }
    next = (char *)memory;
    for (int k = 0; spec->inputs[k]; k++, next += room * sizeof(float)) {
        in[k] = next;
        if (work->in[k] && (spec->inputs[k] == 'c' || spec->inputs[k] == 'o'))
            work->widen(work->in[k], in[k], elements_of(spec->inputs[k], 1, n));
    }
    for (int k = 0; spec->outputs[k]; k++, next += room * sizeof(float)) out[k] = next;
    for (npy_intp at = from; at < to; at += work->step) {
        const npy_intp rows = at + work->step < to ? work->step : to - at;
        for (int k = 0; spec->inputs[k]; k++) {
            const char kind = spec->inputs[k];
            if (work->in[k] == NULL || kind == 'c' || kind == 'o') continue;
            const npy_intp start = elements_of(kind, at, n);
            if (kind == 'b') in[k] = work->in[k] + start;
            else work->widen(work->in[k] + 2 * start, in[k], elements_of(kind, rows, n));
        }
        for (int k = 0; spec->outputs[k]; k++)
            if (spec->outputs[k] == 'b') out[k] = work->out[k] + elements_of('b', at, n);
        void *run = spec->functions[processor][0];
        if (spec->by_rows) ((over_rows)run)(in, out, rows, n, work->params);
        else ((over_elements)run)(in, out, rows, work->params);
        for (int k = 0; spec->outputs[k]; k++) {
            const char kind = spec->outputs[k];
            if (kind != 'b') work->narrow(out[k], work->out[k] + 2 * elements_of(kind, at, n), elements_of(kind, rows, n));
        }
    }
}

/* The kernel of arrays that lie row by row; None if they do not, or rows are not the last axes. */
static PyObject *call_half_rows(const Kernel *kernel, PyObject *const *args, Py_ssize_t count, int type)
{
    const Spec *spec = kernel->spec;
    const char *kinds = spec->inputs;
    PyArrayObject *first = NULL;
    PyObject *made[@LIMIT];
    HalfWork work = {kernel, NULL, cast_of(type, NPY_FLOAT), cast_of(NPY_FLOAT, type), 1, HALF_BLOCK, {NULL}, {NULL}};
    int results = 0, reduced[NPY_MAXDIMS] = {0}, kept = 0;
    double params[@LIMIT + 2];
    if (spec->functions[processor][0] == NULL || strchr(spec->outputs, 'c') || strchr(spec->outputs, 'o')) Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (kinds[k] == '-') continue;
        if (kinds[k] == 'n') { if (args[k] != Py_None) Py_RETURN_NONE; continue; }
        if (!PyArray_CheckExact(args[k])) Py_RETURN_NONE;
        PyArrayObject *x = (PyArrayObject *)args[k];
        if (PyArray_TYPE(x) != (kinds[k] == 'b' ? NPY_BOOL : type) || !PyArray_IS_C_CONTIGUOUS(x)) Py_RETURN_NONE;
        work.in[k] = PyArray_BYTES(x);
        if (kinds[k] != 'e' && kinds[k] != 'b') continue;
        if (first == NULL) first = x;
        else if (!PyArray_SAMESHAPE(first, x)) Py_RETURN_NONE;
    }
    if (first == NULL) Py_RETURN_NONE;
    const int nd = PyArray_NDIM(first);
    npy_intp *dims = PyArray_DIMS(first), rows = 1, shape[NPY_MAXDIMS], ones[NPY_MAXDIMS];
    if (spec->by_rows && !find_axes(kernel, nd, reduced)) Py_RETURN_NONE;
    for (int d = 0; d < nd; d++) {
        if (reduced[d]) work.n *= dims[d];
        else if (work.n > 1 && dims[d] > 1) Py_RETURN_NONE;
        else rows *= dims[d];
        if (!reduced[d]) shape[kept++] = dims[d];
        ones[d] = reduced[d] ? 1 : dims[d];
    }
    if (work.n > HALF_ROW || (spec->above >= 0 && !((double)work.n > kernel->params[spec->above]))) Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < count; k++)
        if (work.in[k] && PyArray_SIZE((PyArrayObject *)args[k]) != elements_of(kinds[k], rows, work.n)) Py_RETURN_NONE;
    for (const char *kind = spec->outputs; *kind; kind++) {
        const int is = *kind == 'b' ? NPY_BOOL : type;
        if (*kind == 'e' || *kind == 'b') made[results] = PyArray_EMPTY(nd, dims, is, 0);
        else if (*kind == 'R' || kernel->keeps) made[results] = PyArray_EMPTY(nd, ones, is, 0);
        else made[results] = PyArray_EMPTY(kept, shape, is, 0);
        if (made[results] == NULL) return drop(made, results);
        work.out[results] = PyArray_BYTES((PyArrayObject *)made[results]);
        results++;
    }
    work.params = with_count(kernel, params, spec->by_rows ? work.n : rows);
    if (spec->by_rows) work.step = work.n < HALF_BLOCK ? HALF_BLOCK / work.n : 1;
    if (work.step > rows) work.step = rows;
    run_parts(work_halves, &work, rows, work.step, rows * work.n);
    return together(made, results);
}

static PyObject *call_typed(const Kernel *kernel, PyObject *const *args, Py_ssize_t count);

/* A kernel of arrays of 16 bits, all of one type. */
static PyObject *call_halves(const Kernel *kernel, PyObject *const *args, Py_ssize_t count)
{
    const char *kinds = kernel->spec->inputs;
    PyObject *given[@LIMIT], *held[@LIMIT];
    int type = -1, holds = 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        given[k] = args[k];
        if (kinds[k] == '-' || kinds[k] == 'n' || kinds[k] == 'b' || !PyArray_CheckExact(args[k])) continue;
        PyArrayObject *x = (PyArrayObject *)args[k];
        if (type < 0) type = PyArray_TYPE(x);
        if (!is_half(PyArray_TYPE(x)) || PyArray_TYPE(x) != type) Py_RETURN_NONE;
        if (PyArray_SIZE(x) == 0 || !PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x)) Py_RETURN_NONE;
    }
    if (type < 0) Py_RETURN_NONE;
    PyObject *made = call_half_rows(kernel, args, count, type);
    if (made != Py_None) return made;
    Py_DECREF(made);
    for (Py_ssize_t k = 0; k < count; k++) {
        if (kinds[k] == '-' || kinds[k] == 'n' || kinds[k] == 'b' || !PyArray_CheckExact(args[k])) continue;
        for (Py_ssize_t j = 0; j < k && given[k] == args[k]; j++)
            if (args[j] == args[k]) given[k] = given[j]; /* x * x is widened once */
        if (given[k] != args[k]) continue;
        given[k] = cast_in_place_of((PyArrayObject *)args[k], NPY_FLOAT);
        if (given[k] == NULL) return drop(held, holds);
        held[holds++] = given[k];
    }
    made = call_typed(kernel, given, count);
    drop(held, holds);
    return narrowed(made, type);
}
"""


def c_halves(limit: int) -> str:
    """The C of all of it."""
    return (_ARRAYS + _CALLS).replace("@LIMIT", str(limit))
