/* Kept calls: found by their arguments, and made, without Python.
 *
 * A table has entries. Each entry has checks, which say whether a call is like the one it was made
 * of, and a way to make such a call: a sequence of kernels on the caller's arrays, launches on a
 * GPU, or the function itself. Checks and the shape of the result are lists of words, which guards and `_encode` write.
 * The structures (Table, Entry, ...) and the kinds of words (ARRAY, VALUE, ...) are declared in
 * `calls.py`, which puts them before this text.
 *
 * There are no headers of Python's or NumPy's: their functions come by address, and of their
 * objects only what `available` in `calls.py` has tried is looked at.
 */
typedef struct object object;

/* The clock of `time.monotonic_ns`. */
#ifdef __APPLE__
#define MONOTONIC 8
#else
#define MONOTONIC 1
#endif
extern int clock_gettime(int clock, i64 *time);

/* Functions of Python's. */
#define PYTHON(X)                                                    \
    X(object *, PyTuple_New, (i64))                                  \
    X(int, PyTuple_SetItem, (object *, i64, object *))               \
    X(object *, PyTuple_GetItem, (object *, i64))                    \
    X(i64, PyTuple_Size, (object *))                                 \
    X(i64, PyObject_Size, (object *))                                \
    X(object *, PyList_GetItem, (object *, i64))                     \
    X(object *, PyList_New, (i64))                                   \
    X(int, PyList_SetItem, (object *, i64, object *))                \
    X(object *, PyObject_CallObject, (object *, object *))           \
    X(object *, PyObject_Vectorcall, (object *, object *const *, u64, object *)) \
    X(object *, PyObject_CallFunctionObjArgs, (object *, ...))       \
    X(int, PyObject_RichCompareBool, (object *, object *, int))      \
    X(double, PyFloat_AsDouble, (object *))                          \
    X(double, PyComplex_RealAsDouble, (object *))                    \
    X(double, PyComplex_ImagAsDouble, (object *))                    \
    X(object *, PyLong_FromLong, (i64))                              \
    X(i64, PyLong_AsLong, (object *))                                \
    X(i64, PyLong_AsLongAndOverflow, (object *, int *))              \
    X(object *, PyObject_GetAttr, (object *, object *))              \
    X(object *, PyDict_GetItem, (object *, object *))                \
    X(i64, PyDict_Size, (object *))                                  \
    X(int, PyDict_Next, (object *, i64 *, object **, object **))     \
    X(object *, PyCell_Get, (object *))                              \
    X(object *, PyFunction_GetCode, (object *))                      \
    X(object *, PyFunction_GetDefaults, (object *))                  \
    X(object *, PyFunction_GetKwDefaults, (object *))                \
    X(void *, PyCapsule_GetPointer, (object *, const char *))        \
    X(void *, PyEval_SaveThread, (void))                             \
    X(void, PyEval_RestoreThread, (void *))                          \
    X(void, PyErr_Clear, (void))                                     \
    X(object *, PyErr_Occurred, (void))                              \
    X(object *, PyErr_NoMemory, (void))                              \
    X(void *, PyMem_Malloc, (u64))                                   \
    X(void, PyMem_Free, (void *))                                    \
    X(void *, PyInterpreterState_Get, (void))                        \
    X(i64, PyList_Size, (object *))                                  \
    X(int, PyContextVar_Get, (object *, object *, object **))        \
    X(void, Py_IncRef, (object *))                                   \
    X(void, Py_DecRef, (object *))

#define POINTER(result, name, parameters) static result(*name) parameters;
PYTHON(POINTER)

/* Types, functions of torch's and names of its attributes, functions of NumPy's and of the
 * sequence. */
static object *array, *integer, *floating, *complex, *tuple, *list, *dict, *threads, *grad_enabled, *yes;
static object *is_nested, *current_device, *raw_stream, *new_tensor, *data_ptr, *modes, *frames;
static object *errors, *warnings, *filters;
/* What asks for no exceptions: a value of the variable `errors`; filters of warnings, how many there
 * are, and the first of them. */
static const struct {
    object *state, *filters;
    i64 count;
    object *first;
} *calm;
static object *(*new_array)(object *type, object *dtype, int dimensions, const i64 *shape,
                            const i64 *strides, void *data, int flags, object *like);
static object *(*scalar)(object *array); /* of an array without dimensions */
static i64 (*sequence)(const void *sequence, int threads);
/* What torch has of a thread, and where in it are the pointers to the first of its modes and behind
 * the last one, or 0: `modes` is called. */
static const char *(*modes_of_thread)(void);
static i64 modes_at;
/* What Python has frames run by, and what runs them if nobody has changed that; or 0. */
static void *(*runs_frames)(void *interpreter), *usual;
/* The ways that the settings allow, how many captures run, and how many jobs have ended; Python's
 * modules, and a name. */
static const i64 *allowed, *captures, *ended;
static object *modules, *cupy, *none, *missed;
static i64 tag; /* where a dict has its tag (dict_tags.py), or 0 */
static i64 items; /* where a tuple has its items */
static object *function; /* Python's type, */
static i64 calls_at; /* and where in one of it what calls it is */

/* All that has an address that is known only when the process runs: name, where it goes. */
#define ROW(result, name, parameters) {#name, (void **)&name},
#define NAME_OF(name) {#name, (void **)&name}
Row npc_names[] = {PYTHON(ROW) NAME_OF(array), NAME_OF(integer), NAME_OF(floating), NAME_OF(complex),
                   NAME_OF(tuple), NAME_OF(list), NAME_OF(dict), NAME_OF(threads), NAME_OF(new_array), NAME_OF(scalar),
                   NAME_OF(sequence), NAME_OF(grad_enabled), NAME_OF(yes),
                   NAME_OF(is_nested), NAME_OF(current_device), NAME_OF(raw_stream),
                   NAME_OF(new_tensor), NAME_OF(data_ptr), NAME_OF(modes), NAME_OF(frames),
                   NAME_OF(allowed), NAME_OF(captures), NAME_OF(ended), NAME_OF(modules), NAME_OF(cupy),
                   NAME_OF(none), NAME_OF(missed), NAME_OF(tag), NAME_OF(items), NAME_OF(errors), NAME_OF(warnings), NAME_OF(filters),
                   NAME_OF(calm), NAME_OF(modes_of_thread), NAME_OF(modes_at), NAME_OF(runs_frames),
                   NAME_OF(usual), NAME_OF(function), NAME_OF(calls_at), {0, 0}};

/* Of what has much on the stack, as functions may call themselves. */
#define NOT_INLINE __attribute__((noinline))

static object *held(object *o) {
    Py_IncRef(o);
    return o;
}

static int equal(object *a, object *b) {
    if (a == b) return 1;
    if (!a || !b) return 0;
    int answer = PyObject_RichCompareBool(a, b, 2);
    if (answer < 0) PyErr_Clear();
    return answer > 0;
}

static object *const *items_of(object *tuple) {
    return (object *const *)((const char *)tuple + items);
}

/* Whether tuples of names, or none, are equal: most names are one object wherever they stand. */
static int same_names(object *a, object *b) {
    if (a == b) return 1;
    if (!a || !b || PyTuple_Size(a) != PyTuple_Size(b)) return 0;
    for (i64 k = PyTuple_Size(a); k--;)
        if (!equal(items_of(a)[k], items_of(b)[k])) return 0;
    return 1;
}

static int same_bits(double a, double b) {
    union { double value; i64 bits; } x = {a}, y = {b};
    return x.bits == y.bits;
}

/* Whether two simple values are one to any program: types and signs of zeros included. */
static int same(object *a, object *b) {
    if (a == b) return 1;
    object *type = ((const Array *)a)->type;
    if (type != ((const Array *)b)->type) return 0;
    if (type == floating) return same_bits(PyFloat_AsDouble(a), PyFloat_AsDouble(b));
    if (type == complex)
        return same_bits(PyComplex_RealAsDouble(a), PyComplex_RealAsDouble(b)) &&
               same_bits(PyComplex_ImagAsDouble(a), PyComplex_ImagAsDouble(b));
    if (type == tuple) {
        i64 n = PyTuple_Size(a);
        if (n != PyTuple_Size(b)) return 0;
        for (i64 k = 0; k < n; k++)
            if (!same(PyTuple_GetItem(a, k), PyTuple_GetItem(b, k))) return 0;
        return 1;
    }
    return equal(a, b);
}

/* The type of the first item of a list or a tuple, of the first value of a dict: there is one. */
static object *type_of_first(object *o) {
    object *kind = ((const Array *)o)->type, *key, *first = 0;
    i64 place = 0;
    if (kind == dict) PyDict_Next(o, &place, &key, &first);
    else first = kind == tuple ? PyTuple_GetItem(o, 0) : PyList_GetItem(o, 0);
    return first ? ((const Array *)first)->type : 0;
}

/* Whether an answer is True. */
static int is_yes(object *answer) {
    if (answer)
        Py_DecRef(answer);
    else
        PyErr_Clear();
    return answer == yes;
}

/* Whether tensors are of these types and have all that a function of torch's asks of them. It ends
 * the process at a nested one. */
static int alike(const i64 *w, object *const *args) {
    i64 n = w[2];
    for (i64 k = 0; k < n; k++) {
        object *t = args[w[3 + k]];
        if (((const Array *)t)->type != (object *)w[3 + n + k]) return 0;
        if (is_yes(PyObject_GetAttr(t, is_nested))) return 0;
    }
    object *all = PyTuple_New(n);
    for (i64 k = 0; all && k < n; k++) PyTuple_SetItem(all, k, held(args[w[3 + k]]));
    if (!all) {
        PyErr_Clear();
        return 0;
    }
    int answer = is_yes(PyObject_CallObject((object *)w[1], all));
    Py_DecRef(all);
    return answer;
}

/* Whether all checks hold. */
static int hold(const i64 *w, i64 words, object *const *args) {
    const i64 *end = w + words;
    while (w < end) switch (*w) {
        case ARRAY: { /* position, dtype, flags that it needs, dimensions, shape, strides */
            const Array *a = (const Array *)args[w[1]];
            i64 n = w[4];
            if (a->type != array || a->dimensions != n) return 0;
            if ((a->flags & w[3]) != w[3]) return 0;
            for (i64 k = 0; k < n; k++)
                if (a->shape[k] != w[5 + k] || a->strides[k] != w[5 + n + k]) return 0;
            if (!equal(a->dtype, (object *)w[2])) return 0;
            w += 5 + 2 * n;
            break;
        }
        case VALUE: /* position, value */
            if (!same(args[w[1]], (object *)w[2])) return 0;
            w += 3;
            break;
        case RANGE: { /* position, least and greatest integer */
            object *o = args[w[1]];
            int beyond = 0;
            if (((const Array *)o)->type != integer) return 0;
            i64 n = PyLong_AsLongAndOverflow(o, &beyond);
            if (beyond || n < w[2] || n > w[3]) return 0;
            w += 4;
            break;
        }
        case SMALL: { /* position, dtype, dimensions, most elements */
            const Array *a = (const Array *)args[w[1]];
            i64 size = 1;
            if (a->type != array || a->dimensions != w[3]) return 0;
            for (i64 k = 0; k < w[3]; k++) size *= a->shape[k];
            if (size > w[4] || !equal(a->dtype, (object *)w[2])) return 0;
            w += 5;
            break;
        }
        case TYPE: /* position, type */
            if (((const Array *)args[w[1]])->type != (object *)w[2]) return 0;
            w += 3;
            break;
        case LENGTH: { /* position, type, least and most items, type of the first one, or 0 */
            object *o = args[w[1]];
            if (((const Array *)o)->type != (object *)w[2]) return 0;
            i64 n = PyObject_Size(o);
            if (n < w[3] || n > w[4]) return 0;
            if (w[5] && type_of_first(o) != (object *)w[5]) return 0;
            w += 6;
            break;
        }
        case PAIR: { /* two positions, whether they are one array, whether memory matters, bytes */
            const Array *a = (const Array *)args[w[1]], *b = (const Array *)args[w[2]];
            if ((a == b) != w[3]) return 0;
            int apart = a->data + w[5] <= b->data || b->data + w[6] <= a->data;
            if (w[4] && a != b && w[5] && w[6] && !apart) return 0;
            w += 7;
            break;
        }
        case BYTES: { /* position, offset, size, what is there */
            const char *now = ((const Array *)args[w[1]])->data + w[2], *then = (const char *)w[4];
            for (i64 k = 0; k < w[3]; k++)
                if (now[k] != then[k]) return 0;
            w += 5;
            break;
        }
        case NAME: /* dict, key, value */
            if (PyDict_GetItem((object *)w[1], (object *)w[2]) != (object *)w[3]) return 0;
            w += 4;
            break;
        case CELL: { /* cell, value */
            object *value = PyCell_Get((object *)w[1]);
            if (value) Py_DecRef(value);
            if (value != (object *)w[2]) return 0;
            w += 3;
            break;
        }
        case FUNCTION: { /* function, where its dict is, code, defaults, of keywords */
            object *f = (object *)w[1], *own = *(object **)((char *)f + w[2]);
            if (own && PyDict_Size(own)) return 0;
            if (PyFunction_GetCode(f) != (object *)w[3]) return 0;
            if (PyFunction_GetDefaults(f) != (object *)w[4]) return 0;
            if (PyFunction_GetKwDefaults(f) != (object *)w[5]) return 0;
            w += 6;
            break;
        }
        case CLASS: /* dict of its attributes, how many, where its bases are, these */
            if (PyDict_Size((object *)w[1]) != w[2] || *(i64 *)w[3] != w[4]) return 0;
            w += 5;
            break;
        case GRAD: /* whether gradients are recorded */
            if (is_yes(PyObject_CallObject(grad_enabled, 0)) != w[1]) return 0;
            w += 2;
            break;
        case ALIKE: /* function, how many tensors, their positions, their types */
            if (!alike(w, args)) return 0;
            w += 3 + 2 * w[2];
            break;
        default: return 0;
    }
    return 1;
}

/* The leaves of an argument, and the lists and dicts that they lie in: none may be there twice. */
typedef struct {
    object *leaf[LEAVES], *structure[LEAVES];
    i64 leaves, structures;
} Leaves;

/* Take apart what is of the form that the words at w say, which moves behind them; whether it is. */
static int opened(const i64 **w, object *x, Leaves *to) {
    object *type = (object *)*(*w)++;
    if (!type) {
        to->leaf[to->leaves++] = x;
        return 1;
    }
    i64 size = *(*w)++;
    if (((const Array *)x)->type != type) return 0;
    if (type == tuple) {
        if (PyTuple_Size(x) != size) return 0;
        for (i64 k = 0; k < size; k++)
            if (!opened(w, PyTuple_GetItem(x, k), to)) return 0;
        return 1;
    }
    for (i64 k = 0; k < to->structures; k++)
        if (to->structure[k] == x) return 0;
    to->structure[to->structures++] = x;
    if (type == list) {
        if (PyList_Size(x) != size) return 0;
        for (i64 k = 0; k < size; k++)
            if (!opened(w, PyList_GetItem(x, k), to)) return 0;
        return 1;
    }
    object *keys = (object *)*(*w)++, *key, *value;
    if (PyDict_Size(x) != size) return 0;
    i64 place = 0;
    for (i64 k = 0; k < size; k++)
        if (!PyDict_Next(x, &place, &key, &value) || !same(key, PyTuple_GetItem(keys, k)) ||
            !opened(w, value, to))
            return 0;
    return 1;
}

/* The arguments of an entry's call, or the leaves of the structures among them; 0 where these are of
 * another form. */
static object *const *leaves(const Entry *e, object *const *args, Leaves *to) {
    const i64 *w = e->structures;
    if (!w) return args;
    to->leaves = to->structures = 0;
    for (i64 k = 0; k < e->given; k++)
        if (!opened(&w, args[k], to)) return 0;
    return to->leaf;
}

/* Whether arguments are of an entry's form, and its checks hold for their leaves. */
NOT_INLINE static int hold_within(const Entry *e, object *const *args) {
    Leaves to;
    object *const *found = leaves(e, args, &to);
    return found && hold(e->checks, e->words, found);
}

/* The number of the first entry for such a call, from one on; -1 if there is none. */
static i64 find(const Table *t, i64 k, object *const *args, i64 count, object *names) {
    for (; k < t->count; k++) {
        const Entry *e = t->entries[k];
        if (e->given != count || !same_names(e->names, names)) continue;
        if (e->structures ? hold_within(e, args) : hold(e->checks, e->words, args)) return k;
    }
    return -1;
}

static object *tuple_of(object *const *items, i64 count) {
    object *made = PyTuple_New(count);
    for (i64 k = 0; made && k < count; k++) PyTuple_SetItem(made, k, held(items[k]));
    return made;
}

/* What the function gives, of arguments and new arrays; w moves behind its words. */
static object *give(const i64 **w, const Entry *e, object *const *args, object *const *made) {
    i64 kind = *(*w)++, k = *(*w)++;
    switch (kind) {
        case ARGUMENT: return held(args[k]);
        case MADE: return held(made[k]);
        case SCALAR: return scalar(held(made[k]));
        case CONSTANT: return held((object *)k);
        case TUPLE:
        case LIST: {
            object *whole = kind == TUPLE ? PyTuple_New(k) : PyList_New(k);
            for (i64 m = 0; whole && m < k; m++) {
                object *part = give(w, e, args, made);
                if (!part) {
                    Py_DecRef(whole);
                    return 0;
                }
                (kind == TUPLE ? PyTuple_SetItem : PyList_SetItem)(whole, m, part);
            }
            return whole;
        }
        default: { /* CALL: a function of both */
            object *all = tuple_of(args, e->count), *new = tuple_of(made, e->makes), *r = 0;
            if (all && new)
                r = PyObject_CallFunctionObjArgs((object *)k, all, new, (object *)0);
            if (all) Py_DecRef(all);
            if (new) Py_DecRef(new);
            return r;
        }
    }
}

static object *stopped(const Entry *e, object *const *args, object *const *made, i64 done,
                       Work *w) {
    object *all = tuple_of(args, e->count), *new = tuple_of(made, e->makes);
    object *steps = PyLong_FromLong(done), *work = PyLong_FromLong((i64)w), *r = 0;
    if (all && new && steps && work)
        r = PyObject_CallFunctionObjArgs(e->stopped, all, new, steps, work, (object *)0);
    object *parts[] = {all, new, steps, work};
    for (int k = 0; k < 4; k++)
        if (parts[k]) Py_DecRef(parts[k]);
    return r;
}

static i64 number(object *o) {
    if (!o) return 0;
    i64 n = PyLong_AsLong(o);
    Py_DecRef(o);
    return n;
}

/* Run the sequence of an entry on new arrays. */
static object *run_sequence(Entry *e, object *const *args) {
    Work *w = e->free;
    if (w)
        e->free = w->next;
    else if (!(w = (Work *)number(PyObject_CallObject(e->more, 0))))
        return 0;
    object **objects = w->objects, **made = objects + e->reads, *block = 0, *result = 0;
    for (i64 k = 0; k < e->reads; k++) objects[k] = args[e->read[k]];
    i64 count = 0;
    for (; count < e->makes; count++) {
        const Made *m = &e->made[count];
        made[count] = new_array(array, held(m->dtype), (int)m->dimensions, m->shape, m->strides,
                                0, 0, 0);
        if (!made[count]) break;
    }
    int ready = count == e->makes;
    if (ready && e->block && !w->has_block) {
        block = made[count] = PyObject_CallObject(e->block, 0);
        ready = block != 0;
    }
    int count_of_threads = ready ? (int)number(PyObject_CallObject(threads, 0)) : 0;
    if (count_of_threads > 0) {
        void *state = PyEval_SaveThread();
        i64 done = sequence(w->sequence, count_of_threads);
        PyEval_RestoreThread(state);
        const i64 *words = e->result;
        result = done < w->rows ? stopped(e, args, made, done, w) : give(&words, e, args, made);
    }
    while (count--) Py_DecRef(made[count]);
    if (block) Py_DecRef(block);
    w->next = e->free;
    e->free = w;
    return result;
}

static object *run_function(const Entry *e, object *const *args) {
    i64 named = e->names ? PyTuple_Size(e->names) : 0;
    return PyObject_Vectorcall(e->function, args, e->given - named, e->names);
}

static object *run_programs(const Entry *e, object *const *args) {
    object *all = tuple_of(args, e->count);
    if (!all) return 0;
    object *r = PyObject_CallFunctionObjArgs(e->function, all, (object *)0);
    Py_DecRef(all);
    return r;
}

/* The address of a tensor's data; -1 with an error. */
static i64 address_of(object *tensor) {
    object *address = PyObject_CallFunctionObjArgs(data_ptr, tensor, (object *)0);
    return address ? number(address) : -1;
}

/* Launch the kernels of an entry on new tensors. Where that is not all there is to it, and where the
 * driver refuses, its programs run. */
static object *run_launches(Entry *e, object *const *args) {
    object *made[MOST], *result = 0;
    i64 address[MOST], count = 0, places = 0;
    object *device = PyObject_CallObject(current_device, 0);
    if (!device) return 0;
    if (number(device) != number(held(e->device))) return run_programs(e, args);
    object *handle = PyObject_CallFunctionObjArgs(raw_stream, e->device, (object *)0);
    if (!handle) return 0;
    i64 stream = number(handle);
    GpuWork *w = e->ready, *before = 0;
    for (; w && w->stream != stream; w = w->next) before = w;
    if (!w) {
        if (!(w = (GpuWork *)number(PyObject_CallObject(e->more, 0)))) return 0;
    } else if (before)
        before->next = w->next;
    else
        e->ready = w->next;
    for (i64 k = 0; k < e->reads; k++) {
        if ((address[k] = address_of(args[e->read[k]])) == -1) goto done;
        places |= address[k];
    }
    if (places % 16) {
        result = run_programs(e, args);
        goto done;
    }
    for (; count < e->makes; count++) {
        made[count] = PyObject_CallObject(new_tensor, e->layouts[count]);
        if (!made[count]) goto done;
        if ((address[e->reads + count] = address_of(made[count])) == -1) {
            count++;
            goto done;
        }
    }
    for (i64 k = 0; k < w->linked; k++)
        *(i64 *)w->links[k].slot = address[w->links[k].object];
    void *state = PyEval_SaveThread();
    int (*launch)(const Launch *, i64, i64) = e->launch;
    int error = launch(w->launches, w->count, stream);
    PyEval_RestoreThread(state);
    const i64 *words = e->result;
    result = error ? run_programs(e, args) : give(&words, e, args, made);
done:
    while (count--) Py_DecRef(made[count]);
    w->next = e->ready;
    e->ready = w;
    return result;
}

static object *run(Entry *e, object *const *args) {
    if (e->way == PLAIN) {
        object *owner = held(e->owner), *result = run_function(e, args);
        Py_DecRef(owner);
        return result;
    }
    Leaves to; /* held: another thread may change the lists that they lie in */
    args = leaves(e, args, &to);
    if (!args) return held(missed);
    for (i64 k = 0; e->structures && k < to.leaves; k++) Py_IncRef(to.leaf[k]);
    object *owner = held(e->owner);
    object *(*called)(void *, object *const *) = e->called;
    object *result = e->way == READ ? called(e->form, args)
                     : e->layouts  ? run_launches(e, args)
                     : e->more     ? run_sequence(e, args)
                                   : run_programs(e, args);
    for (i64 k = 0; e->structures && k < to.leaves; k++) Py_DecRef(to.leaf[k]);
    Py_DecRef(owner);
    return result;
}

/* What a dict that stays has under a name, or 0; looked up where the dict has changed. */
typedef struct { i64 tag; object *value; } Known;

static object *known_in(object *of, object *name, Known *known) {
    i64 now = tag ? *(i64 *)((char *)of + tag) : 0;
    if (!now || now != known->tag) *known = (Known){now, PyDict_GetItem(of, name)};
    return known->value;
}

static int has_cupy(void) {
    static Known known;
    return known_in(modules, cupy, &known) != 0;
}

/* Whether floating-point errors are to be exceptions, as far as is known. */
static int is_told(void) {
    object *now = 0;
    if (PyContextVar_Get(errors, 0, &now) < 0) PyErr_Clear();
    if (now) Py_DecRef(now);
    if (now != calm->state) return 1;
    static Known known;
    object *heard = known_in(warnings, filters, &known);
    if (!heard || heard != calm->filters || PyList_Size(heard) != calm->count) return 1;
    return calm->count && PyList_GetItem(heard, 0) != calm->first;
}

/* Whether a call is made by its entry now. */
static int is_due(const Table *t, Entry *e, i64 ways) {
    if (e->way != PLAIN && is_told()) return 0;
    if (e->way == READ) {
        if (!(ways & READS) || (!e->sees_all && has_cupy())) return 0;
        return !(ways & WEIGHS) || !t->unweighed || (*t->unweighed > 0 && (*t->unweighed)--);
    }
    if (e->way == UNSETTLED || !(ways & (e->way == PLAIN ? MEASURED : KEPT))) return 0;
    if (e->skips >= 0 && !e->left--) {
        e->left = e->skips;
        return 0;
    }
    return e->way == PLAIN || hold(t->reach, t->words, 0);
}

/* A call: its result, or `miss` where it has to go the long way. Of Python's kind FASTCALL. */
object *npc_call(object *self, object *const *args, i64 count, object *names) {
    const Table *t = PyCapsule_GetPointer(self, 0);
    if (names) count += PyTuple_Size(names);
    i64 k = find(t, 0, args, count, names);
    if (k < 0 || !is_due(t, t->entries[k], KEPT | MEASURED)) return held(t->miss);
    return run(t->entries[k], args);
}

/* As `npc_call`, of what was made of the function's source alone. */
object *npc_read(object *self, object *const *args, i64 count, object *names) {
    const Table *t = PyCapsule_GetPointer(self, 0);
    if (names) count += PyTuple_Size(names);
    for (i64 k = 0; (k = find(t, k, args, count, names)) >= 0; k++) {
        if (t->entries[k]->way != READ) continue;
        object *result = run(t->entries[k], args);
        if (result || PyErr_Occurred()) return result;
    }
    return held(t->miss);
}

/* Whether what the function reads is what it was. Of Python's kind FASTCALL. */
object *npc_unchanged(object *self, object *const *args, i64 count, object *names) {
    const Table *t = PyCapsule_GetPointer(self, 0);
    return PyLong_FromLong(hold(t->reach, t->words, 0));
}

/* The same in two steps. count: of the arguments, which begin at `args`. */
i64 npc_find(const Table *t, object *const *args, i64 count, object *names) {
    return find(t, 0, args, count, names);
}

object *npc_run(Entry *e, object *const *args) { return run(e, args); }
