"""How kernels are called, in C: which arrays they take, and how they go over them.

Note [Blocks]
    The function of an element-wise kernel reads arrays that lie in one piece. Operands that do not
    (broadcast, transposed, cut out, or a Python number) are brought into such a piece block by
    block, in memory that stays in the processor's first cache. Results are new arrays; their axes
    lie in the order that PyTorch gives them, and blocks follow that order.

Note [A number a line]
    A number next to an array, and what is the same along each line of the result (`x / x.sum(1,
    keepdim=True)`), need no such piece: functions of two operands are compiled once more with one
    of them in a register, always as the second argument, and called line by line.

Note [Rows in memory]
    A kernel over rows takes its arrays as outer x n x inner numbers, where n is the axis that is
    reduced, or several that follow one another. With inner = 1 there are outer rows; else rows are
    columns, and another function goes over them (Note [Columns] in `language`). Where axes that are
    reduced do not follow one another, copies are made in which they do.
"""

from __future__ import annotations

from rushlight.codegen.language import FEWER, SPLITS, WIDE

ELEMENTS = """
#define BLOCK 1024  /* elements that are brought into one piece at a time */
#define LINE 64     /* elements of lines that are worth a call */
#define MOST 16     /* axes */

/* Give back references; NULL, the answer of a call that failed. */
static PyObject *drop(PyObject **held, int count) {
    while (count) Py_XDECREF(held[--count]);
    return NULL;
}

/* One array, or a tuple of several; the references are handed over. */
static PyObject *together(PyObject **made, int count) {
    if (count == 1) return made[0];
    PyObject *several = PyTuple_New(count);
    if (several == NULL) return drop(made, count);
    for (int k = 0; k < count; k++) PyTuple_SET_ITEM(several, k, made[k]);
    return several;
}

static int which_function(const Spec *spec, int type) {
    const int which = type == NPY_FLOAT ? 0 : type == NPY_DOUBLE ? 1 : -1;
    return which >= 0 && spec->functions[processor][which] ? which : -1;
}

static const double *with_count(const Kernel *kernel, double *room, npy_intp count) {
    memcpy(room, kernel->params, sizeof(kernel->params));
    room[@LIMIT] = (double)count;
    room[@LIMIT + 1] = 0; /* see Note [Parts of rows] in `language` */
    return room;
}

/* An operand of an element-wise kernel that is not simply in one piece: see Note [Blocks]. */
typedef struct {
    char *data;
    npy_intp unit;         /* bytes of an element */
    npy_intp steps[MOST];  /* bytes along the axes of the result, in the order of its memory */
    int sort;              /* what has to be done */
    double number;
} Operand;
enum { DENSE, SAME, SPREAD };

typedef struct {
    over_elements run;
    const double *params;
    int inputs, outputs, axes, rooms;
    npy_intp dims[MOST], total, block;
    int is_double;
    Operand in[@LIMIT];
    char *out[@LIMIT];
    npy_intp out_unit[@LIMIT];
} Work;

/* Copy elements that are `step` bytes apart into one piece. */
static void copy_line(char *to, const char *from, npy_intp step, npy_intp unit, npy_intp count) {
    if (step == unit) memcpy(to, from, count * unit);
    else if (unit == 4) {
        int32_t *y = (int32_t *)to;
        if (step == 0) {
            const int32_t x = *(const int32_t *)from;
#pragma omp simd
            for (npy_intp i = 0; i < count; i++) y[i] = x;
        } else for (npy_intp i = 0; i < count; i++) y[i] = *(const int32_t *)(from + i * step);
    } else if (unit == 8) {
        int64_t *y = (int64_t *)to;
        if (step == 0) {
            const int64_t x = *(const int64_t *)from;
#pragma omp simd
            for (npy_intp i = 0; i < count; i++) y[i] = x;
        } else for (npy_intp i = 0; i < count; i++) y[i] = *(const int64_t *)(from + i * step);
    } else for (npy_intp i = 0; i < count; i++) to[i] = from[i * step];
}

/* Elements `from`... of an operand in one piece: where they are, or in `room`. */
static char *fetch(const Work *work, const Operand *x, npy_intp from, npy_intp count, char *room) {
    if (x->sort == DENSE) return x->data + from * x->unit;
    if (x->sort == SAME) return room;
    const int last = work->axes - 1;
    const npy_intp inner = work->dims[last], step = x->steps[last];
    npy_intp place[MOST], rest = from / inner, at = from % inner;
    char *line = x->data, *to = room;
    for (int d = last - 1; d >= 0; d--) {
        place[d] = rest % work->dims[d];
        rest /= work->dims[d];
        line += place[d] * x->steps[d];
    }
    if (step == x->unit && at + count <= inner) return line + at * step;
    while (count) {
        const npy_intp part = inner - at < count ? inner - at : count;
        copy_line(to, line + at * step, step, x->unit, part);
        to += part * x->unit;
        count -= part;
        at = 0;
        for (int d = last - 1; d >= 0; d--) {
            line += x->steps[d];
            if (++place[d] < work->dims[d]) break;
            line -= x->steps[d] * work->dims[d];
            place[d] = 0;
        }
    }
    return room;
}

/* The elements from `from` to `to` of an element-wise kernel's results. */
static void work_elements(void *given, npy_intp from, npy_intp to) {
    const Work *work = given;
    double rooms[work->rooms + 1][BLOCK];
    char *in[@LIMIT], *out[@LIMIT], *room[@LIMIT];
    int next = 0;
    for (int k = 0; k < work->inputs; k++) {
        const Operand *x = &work->in[k];
        room[k] = x->sort == DENSE ? NULL : (char *)rooms[next++];
        if (x->sort != SAME) continue;
        if (x->data == NULL && work->is_double) for (int i = 0; i < BLOCK; i++) ((double *)room[k])[i] = x->number;
        else if (x->data == NULL) for (int i = 0; i < BLOCK; i++) ((float *)room[k])[i] = (float)x->number;
        else copy_line(room[k], x->data, 0, x->unit, BLOCK);
    }
    for (npy_intp at = from; at < to; at += work->block) {
        const npy_intp count = at + work->block < to ? work->block : to - at;
        for (int k = 0; k < work->inputs; k++) in[k] = fetch(work, &work->in[k], at, count, room[k]);
        for (int k = 0; k < work->outputs; k++) out[k] = work->out[k] + at * work->out_unit[k];
        work->run(in, out, count, work->params);
    }
}

/* Two operands of which one is a number along each line: see Note [A number a line]. */
typedef struct {
    over_elements run;
    const double *params;
    char *x, *numbers, *out;
    npy_intp unit, out_unit, line; /* elements of a line */
    int axes;                      /* of the lines, with their sizes and the operands' steps */
    const npy_intp *dims, *x_steps, *steps;
} NumberWork;

static void work_lines(void *given, npy_intp from, npy_intp to) {
    const NumberWork *work = given;
    while (from < to) {
        const npy_intp at = from % work->line, left = work->line - at;
        const npy_intp count = left < to - from ? left : to - from;
        npy_intp rest = from / work->line;
        char *x = work->x + at * work->unit, *number = work->numbers;
        for (int d = work->axes - 1; d >= 0 && rest; d--) {
            const npy_intp place = rest % work->dims[d];
            x += place * work->x_steps[d];
            number += place * work->steps[d];
            rest /= work->dims[d];
        }
        char *in[2] = {x, number}, *out[1] = {work->out + from * work->out_unit};
        work->run(in, out, count, work->params);
        from += count;
    }
}

/* The function of a kernel of two operands for a number as operand `at`; NULL if there is none. */
static over_elements with_number(const Spec *spec, int which, int at) {
    return (over_elements)spec->functions[processor][(at == 1 ? 2 : 4) + which];
}

/* An element-wise kernel of an array in one piece and a number, which is operand `at`; the result
   is `made`, or new memory that lies as the array does. None if there is no function for it. */
static PyObject *call_with_number(const Kernel *kernel, PyArrayObject *a, double value, int at, PyArrayObject *made) {
    const Spec *spec = kernel->spec;
    const int type = PyArray_TYPE(a), rows = PyArray_IS_C_CONTIGUOUS(a);
    const int which = type == NPY_FLOAT ? 0 : type == NPY_DOUBLE ? 1 : -1;
    union { float f; double d; } number;
    NumberWork work;
    if (which < 0 || !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a) || !(rows || PyArray_IS_F_CONTIGUOUS(a))) Py_RETURN_NONE;
    work.run = with_number(spec, which, at);
    if (work.run == NULL) Py_RETURN_NONE;
    if (which) number.d = value;
    else number.f = (float)value;
    const int bools = spec->outputs[0] == 'b';
    if (made) Py_INCREF(made);
    else made = (PyArrayObject *)PyArray_EMPTY(PyArray_NDIM(a), PyArray_DIMS(a), bools ? NPY_BOOL : type, !rows);
    if (made == NULL) return NULL;
    work.params = kernel->params;
    work.x = PyArray_BYTES(a);
    work.unit = which ? 8 : 4;
    work.numbers = (char *)&number;
    work.out = PyArray_BYTES(made);
    work.out_unit = bools ? 1 : work.unit;
    work.line = PyArray_SIZE(a);
    work.axes = 0;
    run_parts(work_lines, &work, work.line, BLOCK, work.line);
    return (PyObject *)made;
}

/* Strides as PyTorch shows them: NumPy writes 0 for new axes of size 1. */
static void shown_strides(PyArrayObject *x, npy_intp *strides) {
    for (int d = PyArray_NDIM(x) - 1; d >= 0; d--) {
        strides[d] = PyArray_STRIDE(x, d);
        if (strides[d] == 0 && PyArray_DIM(x, d) == 1) {
            const int last = d == PyArray_NDIM(x) - 1;
            const npy_intp next = last ? 1 : PyArray_DIM(x, d + 1);
            strides[d] = last ? PyArray_ITEMSIZE(x) : (next > 1 ? next : 1) * strides[d + 1];
        }
    }
}

/* Whether axis `one` belongs inside `two` (-1), outside (1), or nobody can tell (0). */
static int inner_first(const npy_intp *dims, npy_intp (*strides)[MOST], int count, int one, int two) {
    for (int k = 0; k < count; k++) {
        const npy_intp a = strides[k][one], b = strides[k][two];
        if (a == 0 || b == 0) continue;
        if (a != b) return a < b ? -1 : 1;
        if (dims[one] > dims[two]) return 1;
    }
    return 0;
}

/* The order of a result's axes, the widest stride first: `outward_axes` in `random.exact`. */
static void order_axes(int nd, const npy_intp *dims, npy_intp (*strides)[MOST], int count, int *order) {
    for (int d = 0; d < nd; d++) order[d] = nd - 1 - d;
    for (int last = 1; last < nd; last++) {
        int at = last;
        for (int before = last - 1; before >= 0; before--) {
            const int swap = inner_first(dims, strides, count, order[before], order[at]);
            if (swap < 0) break;
            if (swap > 0) {
                const int axis = order[before];
                order[before] = order[at];
                order[at] = axis;
                at = before;
            }
        }
    }
    for (int d = 0; d < nd / 2; d++) {
        const int axis = order[d];
        order[d] = order[nd - 1 - d];
        order[nd - 1 - d] = axis;
    }
}

/* Whether operands agree on the order of the axes: gradients lie as the steps of the rule have them,
   and where these are not all alike, the rule has to take them. */
static int agree(int nd, npy_intp (*strides)[MOST], int count) {
    for (int d = 0; d < nd; d++)
        for (int e = d + 1; e < nd; e++)
            for (int k = 0, seen = 0; k < count; k++) {
                const npy_intp a = strides[k][d], b = strides[k][e];
                const int now = a == 0 || b == 0 || a == b ? 0 : a < b ? 1 : 2;
                if (now && seen && now != seen) return 0;
                if (now) seen = now;
            }
    return 1;
}

/* An element-wise kernel of operands of any layout and of numbers: see Note [Blocks]. */
static PyObject *call_spread(const Kernel *kernel, PyObject *const *args, Py_ssize_t count)
{
    const Spec *spec = kernel->spec;
    const char *kinds = spec->inputs;
    Work work;
    npy_intp dims[MOST], strides[@LIMIT][MOST];
    int nd = 0, type = -1, in_rows = 1, arrays = 0, order[MOST];
    double params[@LIMIT + 2];
    for (int k = 0; count == 2 && k < 2; k++) {
        if (!PyFloat_CheckExact(args[k]) && !PyLong_CheckExact(args[k])) continue;
        const double number = PyFloat_AsDouble(args[k]);
        if (number == -1 && PyErr_Occurred()) { PyErr_Clear(); Py_RETURN_NONE; }
        if (!PyArray_CheckExact(args[1 - k])) break;
        PyObject *y = call_with_number(kernel, (PyArrayObject *)args[1 - k], number, k, NULL);
        if (y != Py_None) return y;
        Py_DECREF(y);
    }
    work.rooms = 0;
    for (Py_ssize_t k = 0; k < count; k++) { /* the shape and the type */
        PyArrayObject *a = (PyArrayObject *)args[k];
        if (kinds[k] == '-') continue;
        if (kinds[k] == 'n') { if (args[k] != Py_None) Py_RETURN_NONE; continue; }
        if (!PyArray_CheckExact(args[k])) {
            if (kinds[k] == 'e' && (PyFloat_CheckExact(args[k]) || PyLong_CheckExact(args[k]))) continue;
            Py_RETURN_NONE;
        }
        const int is = PyArray_TYPE(a), rank = PyArray_NDIM(a);
        if (!PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a) || rank > MOST) Py_RETURN_NONE;
        if (kinds[k] == 'b') {
            if (is != NPY_BOOL) Py_RETURN_NONE;
        } else if (type < 0) type = is;
        else if (is != type) Py_RETURN_NONE;
        if (kinds[k] == 'o') {
            if (PyArray_SIZE(a) != 1) Py_RETURN_NONE;
            continue;
        }
        while (nd < rank) { /* room for more axes, in front */
            for (int d = nd; d > 0; d--) dims[d] = dims[d - 1];
            dims[0] = 1;
            nd++;
        }
        for (int d = 0; d < rank; d++) {
            npy_intp *have = &dims[nd - rank + d];
            if (*have == 1) *have = PyArray_DIM(a, d);
            else if (PyArray_DIM(a, d) != 1 && PyArray_DIM(a, d) != *have) Py_RETURN_NONE;
        }
        in_rows &= !!(PyArray_FLAGS(a) & NPY_ARRAY_C_CONTIGUOUS);
    }
    const int which = which_function(spec, type);
    if (which < 0) Py_RETURN_NONE;
    work.total = 1;
    for (int d = 0; d < nd; d++) work.total *= dims[d];
    if (work.total == 0) Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < count; k++) { /* the operands, along the axes of the result */
        Operand *x = &work.in[k];
        x->data = NULL;
        x->sort = SAME;
        x->number = 0;
        x->unit = 0;
        if (kinds[k] == '-' || kinds[k] == 'n') { x->sort = DENSE; continue; }
        if (!PyArray_CheckExact(args[k])) {
            x->number = PyFloat_AsDouble(args[k]);
            if (x->number == -1 && PyErr_Occurred()) { PyErr_Clear(); Py_RETURN_NONE; }
            work.rooms++;
            continue;
        }
        PyArrayObject *a = (PyArrayObject *)args[k];
        x->data = PyArray_BYTES(a);
        x->unit = PyArray_ITEMSIZE(a);
        if (kinds[k] == 'o') { x->sort = DENSE; x->unit = 0; continue; }
        const int rank = PyArray_NDIM(a), missing = nd - rank;
        npy_intp shown[MOST], *own = strides[arrays];
        shown_strides(a, shown);
        for (int d = 0; d < missing; d++) own[d] = x->steps[d] = 0;
        for (int d = 0; d < rank; d++) {
            const int repeated = PyArray_DIM(a, d) == 1 && dims[missing + d] != 1;
            own[missing + d] = repeated ? 0 : shown[d];
            x->steps[missing + d] = PyArray_DIM(a, d) == 1 ? 0 : PyArray_STRIDE(a, d);
        }
        if (rank) arrays++;
        x->sort = SPREAD;
        work.rooms++;
    }
    for (int d = 0; d < nd; d++) order[d] = d;
    if (!in_rows) {
        if (spec->follows && !agree(nd, strides, arrays)) Py_RETURN_NONE;
        order_axes(nd, dims, strides, arrays, order);
    }
    npy_intp out_strides[MOST], dense = 1;
    for (int d = nd - 1; d >= 0; d--) {
        out_strides[order[d]] = dense;
        dense *= dims[order[d]] > 1 ? dims[order[d]] : 1;
    }
    /* axes that follow one another in all operands are one */
    work.axes = 0;
    npy_intp merged[@LIMIT][MOST];
    for (int d = 0; d < nd; d++) {
        const int axis = order[d], now = work.axes - 1;
        if (dims[axis] == 1) continue;
        int joins = now >= 0;
        for (Py_ssize_t k = 0; k < count && joins; k++)
            if (work.in[k].sort == SPREAD) joins = merged[k][now] == work.in[k].steps[axis] * dims[axis];
        if (joins) work.dims[now] *= dims[axis];
        else work.dims[work.axes++] = dims[axis];
        for (Py_ssize_t k = 0; k < count; k++)
            if (work.in[k].sort == SPREAD) merged[k][work.axes - 1] = work.in[k].steps[axis];
    }
    if (work.axes == 0) { work.dims[0] = 1; work.axes = 1; for (Py_ssize_t k = 0; k < count; k++) merged[k][0] = 0; }
    for (Py_ssize_t k = 0; k < count; k++) {
        Operand *x = &work.in[k];
        if (x->sort != SPREAD) continue;
        int same = 1, in_piece = 1;
        npy_intp expected = x->unit;
        for (int d = work.axes - 1; d >= 0; d--) {
            x->steps[d] = merged[k][d];
            same &= x->steps[d] == 0;
            in_piece &= x->steps[d] == expected;
            expected *= work.dims[d];
        }
        if (in_piece || work.total == 1) { x->sort = DENSE; work.rooms--; }
        else if (same) x->sort = SAME;
    }
    PyObject *made[@LIMIT];
    int results = 0;
    for (const char *kind = spec->outputs; *kind; kind++) {
        const int is = *kind == 'b' ? NPY_BOOL : type;
        const npy_intp unit = is == NPY_BOOL ? 1 : is == NPY_FLOAT ? 4 : 8;
        npy_intp bytes[MOST];
        for (int d = 0; d < nd; d++) bytes[d] = out_strides[d] * unit;
        made[results] = PyArray_New(&PyArray_Type, nd, dims, is, bytes, NULL, 0, 0, NULL);
        if (made[results] == NULL) return drop(made, results);
        work.out[results] = PyArray_BYTES((PyArrayObject *)made[results]);
        work.out_unit[results++] = unit;
    }
    const npy_intp inner = work.dims[work.axes - 1];
    work.block = inner >= BLOCK / 4 && inner <= BLOCK ? inner : BLOCK; /* lines as they are, if possible */
    work.run = (over_elements)spec->functions[processor][which];
    work.params = with_count(kernel, params, work.total);
    work.inputs = (int)count;
    work.outputs = results;
    work.is_double = type == NPY_DOUBLE;
    for (int k = 0; count == 2 && inner >= LINE && k < 2; k++) {
        const Operand *number = &work.in[k], *x = &work.in[1 - k];
        if (number->sort == DENSE || number->data == NULL || x->data == NULL) continue;
        if (number->steps[work.axes - 1] != 0 || x->steps[work.axes - 1] != x->unit || !with_number(spec, which, k)) continue;
        NumberWork lines = {with_number(spec, which, k), work.params, x->data, number->data, work.out[0], x->unit, work.out_unit[0],
                            inner, work.axes - 1, work.dims, x->steps, number->steps};
        run_parts(work_lines, &lines, work.total, 1, work.total);
        return together(made, results);
    }
    run_parts(work_elements, &work, work.total, work.block, work.total);
    return together(made, results);
}

/* An element-wise kernel; here of arrays of one shape in one piece, which is the common case. */
static PyObject *call_elements(const Kernel *kernel, PyObject *const *args, Py_ssize_t count)
{
    const Spec *spec = kernel->spec;
    const char *kinds = spec->inputs;
    PyArrayObject *first = NULL;
    Work work;
    PyObject *made[@LIMIT];
    int type = -1, results = 0, flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (kinds[k] == '-') continue;
        if (kinds[k] == 'n') { if (args[k] != Py_None) Py_RETURN_NONE; continue; }
        if (!PyArray_CheckExact(args[k])) return call_spread(kernel, args, count);
        PyArrayObject *a = (PyArrayObject *)args[k];
        const PyArray_Descr *descr = PyArray_DESCR(a);
        const int is = descr->type_num;
        if (descr->byteorder == '>' || !PyArray_ISALIGNED(a)) Py_RETURN_NONE;
        if (kinds[k] == 'b') { if (is != NPY_BOOL) Py_RETURN_NONE; }
        else {
            if (type < 0) type = is;
            else if (is != type) Py_RETURN_NONE;
        }
        work.in[k].data = PyArray_BYTES(a);
        work.in[k].unit = is == NPY_FLOAT ? 4 : is == NPY_BOOL ? 1 : 8;
        work.in[k].sort = DENSE;
        if (kinds[k] == 'o') {
            if (PyArray_SIZE(a) != 1) Py_RETURN_NONE;
            work.in[k].unit = 0;
            continue;
        }
        if (first == NULL) first = a;
        else if (first != a) {
            const int nd = PyArray_NDIM(a);
            if (nd != PyArray_NDIM(first)) return call_spread(kernel, args, count);
            for (int d = 0; d < nd; d++)
                if (PyArray_DIM(a, d) != PyArray_DIM(first, d)) return call_spread(kernel, args, count);
        }
        flags &= PyArray_FLAGS(a);
    }
    if (first == NULL) Py_RETURN_NONE;
    if (flags == 0) return call_spread(kernel, args, count);
    const int which = which_function(spec, type);
    if (which < 0) Py_RETURN_NONE;
    char *in[@LIMIT], *out[@LIMIT];
    for (const char *kind = spec->outputs; *kind; kind++) {
        const int is = *kind == 'b' ? NPY_BOOL : type;
        made[results] = PyArray_EMPTY(PyArray_NDIM(first), PyArray_DIMS(first), is, !(flags & NPY_ARRAY_C_CONTIGUOUS));
        if (made[results] == NULL) return drop(made, results);
        out[results] = PyArray_BYTES((PyArrayObject *)made[results]);
        work.out_unit[results++] = is == NPY_BOOL ? 1 : type == NPY_FLOAT ? 4 : 8;
    }
    const npy_intp size = PyArray_SIZE(first);
    double params[@LIMIT + 2];
    const double *p = spec->counts ? with_count(kernel, params, size) : kernel->params;
    if (size <= MANY) {
        for (Py_ssize_t k = 0; k < count; k++) in[k] = kinds[k] == '-' || kinds[k] == 'n' ? NULL : work.in[k].data;
        ((over_elements)spec->functions[processor][which])(in, out, size, p);
        return together(made, results);
    }
    for (Py_ssize_t k = 0; k < count; k++)
        if (kinds[k] == '-' || kinds[k] == 'n') {
            work.in[k].data = NULL;
            work.in[k].unit = 0;
            work.in[k].sort = DENSE;
        }
    work.run = (over_elements)spec->functions[processor][which];
    work.params = p;
    work.inputs = (int)count;
    work.outputs = results;
    work.rooms = 0;
    work.total = size;
    work.block = size; /* each part in one piece */
    for (int k = 0; k < results; k++) work.out[k] = out[k];
    run_parts(work_elements, &work, size, BLOCK, size);
    return together(made, results);
}
"""

ROWS = """
/* What a kernel over rows goes over: see Note [Rows in memory]. */
typedef struct {
    const Spec *spec;
    void *run;
    const double *params;
    npy_intp n, inner, sets, wide; /* sets of `wide` columns */
    char *in[@LIMIT], *out[@LIMIT];
    npy_intp unit;
} RowWork;

/* How many bytes an operand of a kind has for one row. */
static npy_intp row_bytes(char kind, npy_intp n, npy_intp unit) {
    return kind == 'e' ? n * unit : kind == 'b' ? n : kind == 'r' || kind == 'R' ? unit : 0;
}

static void work_rows(void *given, npy_intp from, npy_intp to) {
    const RowWork *lines = given;
    char *in[@LIMIT], *out[@LIMIT];
    for (int k = 0; lines->spec->inputs[k]; k++)
        in[k] = lines->in[k] + from * row_bytes(lines->spec->inputs[k], lines->n, lines->unit);
    for (int k = 0; lines->spec->outputs[k]; k++)
        out[k] = lines->out[k] + from * row_bytes(lines->spec->outputs[k], lines->n, lines->unit);
    ((over_rows)lines->run)(in, out, to - from, lines->n, lines->params);
}

static void work_columns(void *given, npy_intp from, npy_intp to) {
    const RowWork *lines = given;
    char *in[@LIMIT], *out[@LIMIT];
    for (npy_intp at = from; at < to; at++) {
        const npy_intp first = at % lines->sets * lines->wide, outer = at / lines->sets;
        const npy_intp w = first + lines->wide < lines->inner ? lines->wide : lines->inner - first;
        for (int k = 0; lines->spec->inputs[k]; k++) {
            const char kind = lines->spec->inputs[k];
            const npy_intp bytes = row_bytes(kind, lines->n, lines->unit);
            in[k] = lines->in[k] + outer * lines->inner * bytes + first * (bytes ? lines->unit : 0);
        }
        for (int k = 0; lines->spec->outputs[k]; k++) {
            const npy_intp bytes = row_bytes(lines->spec->outputs[k], lines->n, lines->unit);
            out[k] = lines->out[k] + outer * lines->inner * bytes + first * lines->unit;
        }
        ((over_columns)lines->run)(in, out, lines->n, lines->inner, w, lines->params);
    }
}

#define SEGMENT 32768   /* elements of a long row that are reduced at a time */
#define SEGMENTS 262144 /* and of columns side by side, about */
#define SPLITS @SPLITS  /* numbers that are kept of a part, at the most */

/* Rows, or columns, part by part: see Note [Parts of rows] in `language`. Where there are but a few
   columns, several lines are taken as one, which has as many times the columns. */
typedef struct {
    const RowWork *lines;
    npy_intp fold, length, segments, rest; /* lines in one; of those, in a segment; segments; lines left over */
    npy_intp parts;                        /* of a row, or of a set of columns */
    double *found;                         /* for each part `spec->splits` numbers, of each column */
} Segments;
#define FOLDED 128 /* columns that several lines make, at the most */

/* Call the function of a kernel for one part of a row, or of all columns side by side. */
static void reduce_part(const RowWork *lines, char **in, npy_intp in_unit, char **out, npy_intp out_unit, npy_intp n) {
    if (lines->inner == 1) {
        ((over_rows)lines->run)(in, out, 1, n, lines->params);
        return;
    }
    for (npy_intp first = 0; first < lines->inner; first += lines->wide) {
        const npy_intp w = first + lines->wide < lines->inner ? lines->wide : lines->inner - first;
        char *here[@LIMIT], *made[@LIMIT];
        for (int k = 0; lines->spec->inputs[k]; k++) here[k] = in[k] + (lines->spec->inputs[k] == 'o' ? 0 : first * in_unit);
        for (int k = 0; lines->spec->outputs[k]; k++) made[k] = out[k] + first * out_unit;
        ((over_columns)lines->run)(here, made, n, lines->inner, w, lines->params);
    }
}

static void work_segments(void *given, npy_intp from, npy_intp to) {
    const Segments *all = given;
    const int numbers = all->lines->spec->splits;
    const npy_intp inner = all->lines->inner, folded = all->lines->n / all->fold, each = all->segments + (all->rest > 0);
    char *in[@LIMIT], *out[@LIMIT];
    for (npy_intp at = from; at < to; at++) {
        const npy_intp row = at / each, segment = at % each, first = segment * all->length;
        double room[SPLITS * FOLDED], *found = all->found + (row * all->parts + segment * all->fold) * numbers * inner;
        RowWork lines = *all->lines;
        npy_intp n = folded - first < all->length ? folded - first : all->length, start = first * all->fold;
        if (segment == all->segments) {
            n = all->rest;
            start = folded * all->fold;
        } else {
            lines.inner *= all->fold;
            lines.wide = lines.inner < @WIDE ? lines.inner : @WIDE;
        }
        for (int k = 0; lines.spec->inputs[k]; k++)
            in[k] = lines.in[k] + (row * lines.n + start) * inner * row_bytes(lines.spec->inputs[k], 1, lines.unit);
        for (int k = 0; lines.spec->outputs[k]; k++) out[k] = (char *)(lines.inner == inner ? found : room);
        reduce_part(&lines, in, lines.unit, out, sizeof(double), n);
        if (lines.inner == inner) continue;
        for (npy_intp t = 0; t < all->fold; t++) /* as many parts */
            for (int k = 0; k < numbers; k++) memcpy(found + (t * numbers + k) * inner, room + (k * all->fold + t) * inner, inner * sizeof(double));
    }
}

/* Reduce part by part, and then the parts. Whether there was memory for their numbers. */
static int reduce_parts(const RowWork *lines, double *params, npy_intp outer) {
    const int numbers = lines->spec->splits;
    Segments all = {lines, 1, SEGMENT, 0, 0, 0, NULL};
    char *in[@LIMIT], *out[@LIMIT];
    if (lines->inner > 1) {
        if (lines->inner <= FOLDED / 4) all.fold = FOLDED / lines->inner;
        all.length = (SEGMENTS / (lines->inner * all.fold) / 16 + 1) * 16;
    }
    all.segments = (lines->n / all.fold + all.length - 1) / all.length;
    all.rest = lines->n % all.fold;
    all.parts = all.segments * all.fold + (all.rest > 0);
    all.found = malloc(outer * all.parts * numbers * lines->inner * sizeof(double));
    if (all.found == NULL) return 0;
    params[@LIMIT + 1] = 1;
    run_parts(work_segments, &all, outer * (all.segments + (all.rest > 0)), 1, outer * lines->n * lines->inner);
    params[@LIMIT + 1] = 2;
    for (npy_intp row = 0; row < outer; row++) {
        for (int k = 0; lines->spec->inputs[k]; k++)
            in[k] = lines->spec->inputs[k] == 'o' ? lines->in[k] : (char *)(all.found + row * all.parts * numbers * lines->inner);
        for (int k = 0; lines->spec->outputs[k]; k++) out[k] = lines->out[k] + row * lines->inner * lines->unit;
        reduce_part(lines, in, sizeof(double), out, lines->unit, all.parts);
    }
    free(all.found);
    return 1;
}

/* Which axes of `nd` a kernel reduces, as flags; whether that can be. */
static int find_axes(const Kernel *kernel, int nd, int *reduced) {
    for (int d = 0; d < nd; d++) reduced[d] = kernel->axes == ALL_AXES;
    if (kernel->axes == ALL_AXES) return 1;
    for (int k = 0; k < kernel->axes; k++) {
        const int axis = kernel->axis[k] < 0 ? nd + kernel->axis[k] : kernel->axis[k];
        if (axis < 0 || axis >= nd) return 0;
        reduced[axis] = 1;
    }
    return 1;
}

/* A kernel over rows. */
static PyObject *call_rows(const Kernel *kernel, PyObject *const *args, Py_ssize_t count)
{
    const Spec *spec = kernel->spec;
    const char *kinds = spec->inputs;
    PyArrayObject *first = NULL;
    PyObject *held[2 * @LIMIT], *made[@LIMIT];
    int holds = 0, results = 0, type = -1, reduced[NPY_MAXDIMS];
    for (Py_ssize_t k = 0; k < count; k++) {
        if (kinds[k] == '-') continue;
        if (kinds[k] == 'n') { if (args[k] != Py_None) Py_RETURN_NONE; continue; }
        if (!PyArray_CheckExact(args[k])) Py_RETURN_NONE;
        PyArrayObject *a = (PyArrayObject *)args[k];
        if (!PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) Py_RETURN_NONE;
        if (kinds[k] == 'b') { if (PyArray_TYPE(a) != NPY_BOOL) Py_RETURN_NONE; }
        else if (type < 0) type = PyArray_TYPE(a);
        else if (PyArray_TYPE(a) != type) Py_RETURN_NONE;
        if (kinds[k] != 'e' && kinds[k] != 'b') continue;
        if (first == NULL) first = a;
        else if (!PyArray_SAMESHAPE(first, a)) Py_RETURN_NONE;
        if (spec->follows && !PyArray_IS_C_CONTIGUOUS(a)) Py_RETURN_NONE;
    }
    const int which = which_function(spec, type);
    if (which < 0 || first == NULL || PyArray_SIZE(first) == 0) Py_RETURN_NONE;
    const int nd = PyArray_NDIM(first);
    const npy_intp *dims = PyArray_DIMS(first);
    if (!find_axes(kernel, nd, reduced)) Py_RETURN_NONE;
    /* outer x n x inner, if the axes that are reduced follow one another */
    npy_intp outer = 1, n = 1, inner = 1;
    int stage = 0, apart = 0;
    for (int d = 0; d < nd; d++) {
        if (dims[d] == 1) continue;
        if (reduced[d]) {
            apart |= stage == 2;
            stage = 1;
            n *= dims[d];
        } else {
            if (stage == 1) stage = 2;
            *(stage ? &inner : &outer) *= dims[d];
        }
    }
    npy_intp order[NPY_MAXDIMS], kept[NPY_MAXDIMS], moved[NPY_MAXDIMS];
    int axes = 0;
    if (apart) {
        for (int d = 0; d < nd; d++) if (!reduced[d]) order[axes++] = d;
        for (int d = 0; d < nd; d++) if (reduced[d]) order[axes++] = d;
        for (int d = 0; d < nd; d++) moved[d] = dims[order[d]];
        outer *= inner;
        inner = 1;
    }
    if (spec->above >= 0 && !((double)n > kernel->params[spec->above])) Py_RETURN_NONE;
    void *run = spec->functions[processor][which + (inner > 1 ? 2 : 0)];
    if (run == NULL) Py_RETURN_NONE;
    RowWork lines = {spec, run, NULL, n, inner, 0, 0, {NULL}, {NULL}, PyArray_ITEMSIZE(first)};
    for (Py_ssize_t k = 0; k < count; k++) {
        if (kinds[k] == '-' || kinds[k] == 'n') continue;
        PyArrayObject *a = (PyArrayObject *)args[k];
        const int each = kinds[k] == 'e' || kinds[k] == 'b';
        const npy_intp expected = kinds[k] == 'r' ? outer * inner : kinds[k] == 'c' ? n : 1;
        if (!each && PyArray_SIZE(a) != expected) { drop(held, holds); Py_RETURN_NONE; }
        if (each && apart) {
            PyArray_Dims permutation = {order, nd};
            PyObject *turned = PyArray_Transpose(a, &permutation);
            if (turned == NULL) return drop(held, holds);
            held[holds++] = turned;
            a = (PyArrayObject *)turned;
        }
        if (!PyArray_IS_C_CONTIGUOUS(a)) {
            PyObject *copy = PyArray_NewCopy(a, NPY_CORDER);
            if (copy == NULL) return drop(held, holds);
            held[holds++] = copy;
            a = (PyArrayObject *)copy;
        }
        lines.in[k] = PyArray_BYTES(a);
    }
    axes = 0;
    for (int d = 0; d < nd; d++) if (!reduced[d]) kept[axes++] = dims[d];
    for (const char *kind = spec->outputs; *kind; kind++) {
        PyObject *y;
        if (*kind == 'e' || *kind == 'b')
            y = PyArray_EMPTY(nd, apart ? moved : (npy_intp *)dims, *kind == 'b' ? NPY_BOOL : type, 0);
        else if (*kind == 'c') y = PyArray_EMPTY(1, &n, type, 0);
        else if (*kind == 'R' || kernel->keeps) {
            npy_intp ones[NPY_MAXDIMS];
            for (int d = 0; d < nd; d++) ones[d] = reduced[d] ? 1 : dims[d];
            y = PyArray_EMPTY(nd, ones, type, 0);
        } else y = PyArray_EMPTY(axes, kept, type, 0);
        if (y == NULL) {
            drop(held, holds);
            return drop(made, results);
        }
        lines.out[results] = PyArray_BYTES((PyArrayObject *)y);
        made[results++] = y;
    }
    double params[@LIMIT + 2];
    lines.params = with_count(kernel, params, n);
    if (inner > 1) {
        const npy_intp most = spec->loops > 1 || n < 32 ? @FEWER : @WIDE; /* of a few rows too, all stays in the cache */
        lines.wide = ((spec->loops > 1 ? 65536 / n : inner) + 15) / 16 * 16;
        if (lines.wide < 16) lines.wide = 16;
        if (lines.wide > most) lines.wide = most;
    }
    const int is_long = inner == 1 ? n >= SHARED : n * inner >= (inner <= FOLDED / 4 ? 1024 : 2 * SEGMENTS);
    if (spec->splits && is_long && n >= FOLDED && reduce_parts(&lines, params, outer)) {
        /* done */
    } else if (inner > 1) {
        lines.sets = (inner + lines.wide - 1) / lines.wide;
        run_parts(work_columns, &lines, outer * lines.sets, 1, outer * n * inner);
    } else if (strchr(spec->outputs, 'c')) { /* sums over all rows: in one go */
        PyThreadState *saved = outer * n > MANY ? PyEval_SaveThread() : NULL;
        work_rows(&lines, 0, outer);
        if (saved) PyEval_RestoreThread(saved);
    } else run_parts(work_rows, &lines, outer, 1, outer * n);
    drop(held, holds);
    for (int k = 0; apart && k < results; k++)
        if (spec->outputs[k] == 'e' || spec->outputs[k] == 'b') {
            npy_intp back[NPY_MAXDIMS];
            for (int d = 0; d < nd; d++) back[order[d]] = d;
            PyArray_Dims permutation = {back, nd};
            PyObject *turned = PyArray_Transpose((PyArrayObject *)made[k], &permutation);
            Py_DECREF(made[k]);
            made[k] = turned;
            if (turned && spec->follows) {
                made[k] = PyArray_NewCopy((PyArrayObject *)turned, NPY_CORDER);
                Py_DECREF(turned);
            }
            if (made[k] == NULL) return drop(made, results);
        }
    return together(made, results);
}
"""

FAMILY = """
/* The gradients of an op with several inputs: a kernel for each set of those that are wanted. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int inputs;
    PyObject *members[1 << @INPUTS]; /* by the set, as bits; NULL where there is none */
} Family;

/* family(wanted, g, *saved): gradients in the order of the inputs, None where none is wanted */
static PyObject *call_family(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    const Family *family = (const Family *)self;
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (names != NULL || count < 2 || !PyLong_CheckExact(args[0])) Py_RETURN_NONE;
    const long wanted = PyLong_AsLong(args[0]);
    if (wanted <= 0 || wanted >= 1 << family->inputs) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    if (family->members[wanted] == NULL) Py_RETURN_NONE;
    PyObject *found = call_kernel(family->members[wanted], args + 1, count - 1, NULL);
    if (found == NULL || found == Py_None) return found;
    PyObject *all = PyTuple_New(family->inputs);
    for (int k = 0, at = 0; all && k < family->inputs; k++) {
        PyObject *g = Py_None;
        if (wanted >> k & 1) g = PyTuple_CheckExact(found) ? PyTuple_GET_ITEM(found, at++) : found;
        Py_INCREF(g);
        PyTuple_SET_ITEM(all, k, g);
    }
    Py_DECREF(found);
    return all;
}

static void free_family(PyObject *self) {
    drop(((Family *)self)->members, 1 << @INPUTS);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject Family_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._kernels.Family",
    .tp_basicsize = sizeof(Family),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Family, call),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = free_family,
    .tp_doc = "Kernels of an op's gradients, by which of them are wanted.",
};

/* of_given(kernels, *arrays): the result of the kernel for as many arrays as come before the first None,
   where the others are None too */
static PyObject *call_of_given(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t some = 0;
    if (count < 2 || !PyTuple_Check(args[0])) Py_RETURN_NONE;
    while (some < count - 1 && args[some + 1] != Py_None) some++;
    for (Py_ssize_t k = some + 1; k < count; k++) if (args[k] != Py_None) Py_RETURN_NONE;
    if (some == 0 || some > PyTuple_GET_SIZE(args[0])) Py_RETURN_NONE;
    return PyObject_Vectorcall(PyTuple_GET_ITEM(args[0], some - 1), args + 1, some, NULL);
}

/* if_within(kernel, low, high, x, *others): the result of the kernel if all of x is between the two */
static PyObject *call_if_within(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count < 4 || !PyArray_CheckExact(args[3])) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)args[3];
    const double low = PyFloat_AsDouble(args[1]), high = PyFloat_AsDouble(args[2]);
    if (PyErr_Occurred()) return NULL;
    const int type = PyArray_TYPE(x);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !PyArray_ISCARRAY_RO(x)) Py_RETURN_NONE;
    const npy_intp n = PyArray_SIZE(x);
    int good = 1;
    if (type == NPY_FLOAT) {
        const float *v = PyArray_DATA(x), l = (float)low, h = (float)high;
        for (npy_intp i = 0; i < n; i++) good &= (v[i] >= l) & (v[i] <= h);
    } else {
        const double *v = PyArray_DATA(x);
        for (npy_intp i = 0; i < n; i++) good &= (v[i] >= low) & (v[i] <= high);
    }
    if (!good) Py_RETURN_NONE;
    return PyObject_Vectorcall(args[0], args + 3, count - 3, NULL);
}

/* family(inputs, {wanted: kernel}) */
static PyObject *make_family(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyLong_Check(args[0]) || !PyDict_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "family(inputs, kernels)");
        return NULL;
    }
    Family *family = PyObject_New(Family, &Family_Type);
    if (family == NULL) return NULL;
    family->call = call_family;
    family->inputs = (int)PyLong_AsLong(args[0]);
    memset(family->members, 0, sizeof(family->members));
    PyObject *key, *kernel;
    for (Py_ssize_t at = 0; PyDict_Next(args[1], &at, &key, &kernel);) {
        const long wanted = PyLong_AsLong(key);
        if (family->inputs > @INPUTS || wanted <= 0 || wanted >= 1 << @INPUTS || Py_TYPE(kernel) != &Kernel_Type) {
            Py_DECREF(family);
            PyErr_SetString(PyExc_ValueError, "family(inputs, kernels): not a kernel, or too many inputs");
            return NULL;
        }
        Py_XSETREF(family->members[wanted], Py_NewRef(kernel));
    }
    return (PyObject *)family;
}
"""


def c_calls(limit: int, inputs: int) -> str:
    """The C of all of it, but for families, which need the type of kernels."""
    return _fill(ELEMENTS + ROWS, limit, inputs)


def c_family(limit: int, inputs: int) -> str:
    """The C of families."""
    return _fill(FAMILY, limit, inputs)


def _fill(text: str, limit: int, inputs: int) -> str:
    text = text.replace("@LIMIT", str(limit)).replace("@INPUTS", str(inputs))
    return (
        text.replace("@WIDE", str(WIDE))
        .replace("@FEWER", str(FEWER))
        .replace("@SPLITS", str(SPLITS))
    )
