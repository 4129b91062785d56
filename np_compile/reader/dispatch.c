/* Calls of regions: their inputs found, looked at and put into words, and what they give made of
 * words, without a line of Python.
 *
 * A `Form` is one region for calls with so many arguments, the last ones by these names. It has rows
 * of integers, which `dispatch.py` writes, and declares: for each input where it is found (Fetch)
 * and what it has to be (Fits), and for each exit what it sets and gives (`direct.py` and Gives).
 * Exits of other kinds are Python's, where Form.ended leads to.
 */

/* What is called of Python's and NumPy's beside `Runtime.api`. */
#define MORE(X)                                         \
    X(void *, PyEval_SaveThread, (void))                \
    X(void, PyEval_RestoreThread, (void *))             \
    X(void, PyErr_Clear, (void))                        \
    X(int, PyObject_SetAttr, (void *, void *, void *))  \
    X(void *, PyObject_CallObject, (void *, void *))    \
    X(void *, PyCell_Get, (void *))                     \
    X(void *, PyFunction_GetCode, (void *))             \
    X(void *, PyFunction_GetDefaults, (void *))         \
    X(void *, PyFunction_GetKwDefaults, (void *))       \
    X(void *, PyList_GetItem, (void *, i64))            \
    X(i64, PyList_Size, (void *))                       \
    X(i64, PyObject_Size, (void *))                     \
    X(void *, PySequence_Tuple, (void *))               \
    X(i64, PyLong_AsLong, (void *))                     \
    X(void *, PyCapsule_GetPointer, (void *, const char *)) \
    X(void *, PyUnicode_InternFromString, (const char *)) \
    X(void *, PyLong_FromLong, (i64))                   \
    X(void *, PyLong_FromDouble, (double))              \
    X(void, PyArray_ScalarAsCtype, (void *, void *))
#define POINTER(result, name, parameters) static result(*name) parameters;
MORE(POINTER)
#define ROW(result, name, parameters) {#name, (void **)&name},
struct { const char *name; void **address; } npc_names[] = {MORE(ROW){0, 0}};
Runtime npc_python; /* has the table `api` */

#define TYPE(x) (((void **)(x))[1])

/* An integer of Python's, which goes; -1 with an error. */
static i64 number_of(void *x) {
    Runtime *rt = &npc_python;
    if (!x) return -1;
    i64 n = PyLong_AsLong(x);
    Py_DecRef(x);
    return n;
}

/* An input, held; 0 if there is none. */
static void *fetched(Runtime *rt, const i64 **p, void *const *args, void *const *found) {
    const i64 *w = *p;
    void *x = 0;
    *p = w + 3;
    switch (w[0]) {
    case ARGUMENT: x = args[w[1]]; break;
    case OBJECT: x = (void *)w[1]; break;
    case NAME: x = PyDict_GetItem((void *)w[1], (void *)w[2]); break;
    case BUILTIN:
        *p = w + 4;
        x = PyDict_GetItem((void *)w[1], (void *)w[3]) ? NONE
                                                       : PyDict_GetItem((void *)w[2], (void *)w[3]);
        break;
    case CELL: return PyCell_Get((void *)w[1]);
    case ATTRIBUTE: return PyObject_GetAttr(found[w[1]], (void *)w[2]);
    case KEY: x = PyDict_GetItem(found[w[1]], (void *)w[2]); break;
    case KEYS: return PySequence_Tuple(found[w[1]]);
    case OF: return PyObject_GetAttr((void *)w[1], (void *)w[2]);
    case METHOD: {
        void *method = PyObject_GetAttr(found[w[1]], (void *)w[2]);
        if (!method) return 0;
        x = PyObject_GetAttr(method, (void *)w[3]);
        Py_DecRef(method);
        *p = w + 4;
        return x;
    }
    }
    if (x) Py_IncRef(x);
    return x;
}

static i64 of_bytes(const void *x, i64 size, i64 is_signed) {
    i64 n = 0;
    __builtin_memcpy(&n, x, size);
    return is_signed && size < 8 ? n << (64 - 8 * size) >> (64 - 8 * size) : n;
}

/* Whether names lead to what they have to. */
static int names_hold(const Form *f) {
    Runtime *rt = &npc_python;
    i64 changed = !f->tag;
    for (i64 k = 0; k < f->count && f->tag; k++) {
        i64 tag = *(i64 *)((char *)f->dicts[k] + f->tag);
        changed |= f->tags[k] != tag;
        f->tags[k] = tag;
    }
    if (!changed) return 1;
    for (const i64 *w = f->names; w < f->names_end;) {
        void *x = fetched(rt, &w, 0, 0);
        if (x) Py_DecRef(x);
        if (x != (void *)*w++) {
            if (f->count) f->tags[0] = 0; /* no dict's */
            return 0;
        }
    }
    return 1;
}

/* Whether a value is what it has to be; its words go to *at. */
static int fits(Runtime *rt, const i64 **p, void *x, Word **at) {
    const i64 *w = *p;
    void *type = TYPE(x);
    Word *in = *at;
    int far = 0;
    *p = w + 2;
    switch (w[0]) {
    case SAME: return x == (void *)w[1];
    case TYPED: return type == (void *)w[1];
    case EQUAL:
        if (x == (void *)w[1]) return 1;
        return type == TYPE(w[1]) && PyObject_RichCompareBool(x, (void *)w[1], 2) == 1;
    case INTEGER: /* below w[1], and not below w[2], in absolute value */
        *p = w + 3;
        if (type != PYTHON_int) return 0;
        i64 n = PyLong_AsLongLongAndOverflow(x, &far);
        (*at)++->i = n;
        if (far || (w[1] && (n <= -w[1] || n >= w[1]))) return 0;
        return !w[2] || n <= -w[2] || n >= w[2];
    case FLOATING:
        if (type != PYTHON_float) return 0;
        (*at)++->f = PyFloat_AsDouble(x);
        return 1;
    case COMPLEX:
        if (type != (void *)w[1]) return 0;
        c128 z = PyComplex_AsCComplex(x);
        in[0].f = z.r;
        in[1].f = z.i;
        *at = in + 2;
        return 1;
    case ARRAY: /* dtype, whether it is given */
        *p = w + 3;
        if (type != ARRAY_TYPE) return 0;
        if (w[2]) (*at)++->p = x;
        void *dtype = ((PyArray *)x)->descr;
        return dtype == (void *)w[1] || PyObject_RichCompareBool(dtype, (void *)w[1], 2) == 1;
    case SCALAR: { /* type, letter of its kind, size */
        union { f32 narrow[2]; f64 wide[2]; char bytes[32]; } c;
        *p = w + 4;
        if (type != (void *)w[1]) return 0;
        PyArray_ScalarAsCtype(x, &c);
        if (w[2] == 'c' || w[2] == 'f') {
            for (i64 k = 0; k <= (w[2] == 'c'); k++)
                (*at)++->f = w[3] == (w[2] == 'c' ? 8 : 4) ? c.narrow[k] : c.wide[k];
        } else
            (*at)++->i = of_bytes(&c, w[3], w[2] == 'i');
        return 1;
    }
    case ITEMS: { /* type, whether it is a list, how many, what each one has to be */
        *p = w + 4;
        if (type != (void *)w[1] || (w[2] ? PyList_Size(x) : PyTuple_Size(x)) != w[3]) return 0;
        for (i64 k = 0; k < w[3]; k++)
            if (!fits(rt, p, w[2] ? PyList_GetItem(x, k) : PyTuple_GetItem(x, k), at)) return 0;
        return 1;
    }
    case GENERATOR: { /* type, attributes: of the bit generator, of that */
        *p = w + 4;
        if (type != (void *)w[1]) return 0;
        void *bits = PyObject_GetAttr(x, (void *)w[2]);
        void *capsule = bits ? PyObject_GetAttr(bits, (void *)w[3]) : 0;
        in->p = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : 0;
        *at = in + 1;
        if (bits) Py_DecRef(bits);
        if (capsule) Py_DecRef(capsule);
        if (!in->p) PyErr_Clear();
        return in->p != 0;
    }
    case FUNCTION: { /* it, the function behind it, code, defaults, of keywords */
        void *f = (void *)w[2];
        *p = w + 6;
        return x == (void *)w[1] && PyFunction_GetCode(f) == (void *)w[3] &&
               PyFunction_GetDefaults(f) == (void *)w[4] &&
               PyFunction_GetKwDefaults(f) == (void *)w[5];
    }
    }
    return 0;
}

/* What a call gives. views: those that were made of arrays' memory; Python made one of each. */
typedef struct { State *state; Runtime *rt; PyArray *views[VIEWS]; i64 count; } Out;

/* The array whose memory a buffer is; small memory of C's own becomes one. */
static PyArray *array_behind(Runtime *rt, Buf *b) {
    if (b->owner < 0) {
        PyArray *made = new_array(rt, b->code, 0, b->ndim, b->dims);
        if (!made) return 0;
        __builtin_memcpy(made->data, b->data, b->bytes);
        b->owner = (i64)made; /* `finish` gives it back */
    }
    return b->owner >= OWN ? (void *)b->owner : b->object;
}

static int looks_like(const PyArray *a, const char *data, i64 writeable, const void *descr,
                      i64 ndim, const i64 *dims, const i64 *steps) {
    if (a->data != data || a->nd != ndim || a->descr != descr) return 0;
    if (!(a->flags & WRITEABLE) != !writeable) return 0;
    for (i64 k = 0; k < ndim; k++) if (a->dims[k] != dims[k] || a->strides[k] != steps[k]) return 0;
    return 1;
}

/* The array that a name stands for: one that has a name already, or a view of it. */
static void *array_given(Out *o, const i64 **p) {
    Runtime *rt = o->rt;
    const i64 *s = *p, type = s[2], size = s[3], ndim = s[5];
    Word *out = rt->out;
    Buf *b = out[s[4]].p;
    char *data = out[s[4] + 1].p;
    i64 dims[AXES], steps[AXES], same, none = 0;
    s += 6;
    for (i64 k = 0; k < ndim; k++, s += 2) none |= !(dims[k] = s[0] ? s[1] : out[s[1]].i);
    for (i64 k = 0; k < ndim; k++, s += 2) steps[k] = size * (s[0] ? s[1] : out[s[1]].i);
    i64 view = s[0] ? s[1] : out[s[1]].i;
    *p = s + 2;
    PyArray *a = array_behind(rt, b);
    if (!a) return 0;
    if (b->data == (void *)(b + 1)) data = a->data + (data - (char *)b->data);
    void *descr = PyArray_DescrFromType(type);
    same = !view && a->data == data && a->nd == ndim &&
           (a->descr == descr || PyObject_RichCompareBool(a->descr, descr, 2) == 1);
    for (i64 k = 0; same && k < ndim; k++)
        same = a->dims[k] == dims[k] && (none || dims[k] == 1 || a->strides[k] == steps[k]);
    if (same) {
        Py_DecRef(descr);
        Py_IncRef(a);
        return a;
    }
    i64 writeable = view == 2 ? 0 : a->flags & WRITEABLE;
    for (i64 k = 0; k < o->count; k++)
        if (looks_like(o->views[k], data, writeable, descr, ndim, dims, steps)) {
            Py_DecRef(descr);
            Py_IncRef(o->views[k]);
            return o->views[k];
        }
    PyArray *made = PyArray_NewFromDescr(ARRAY_TYPE, descr, ndim, dims, steps, data, writeable, 0);
    if (!made) return 0;
    Py_IncRef(a);
    if (PyArray_SetBaseObject(made, a)) {
        Py_DecRef(made);
        return 0;
    }
    o->views[o->count++] = made;
    return made;
}

/* A value that leaves, held. */
static void *given_back(Out *o, const i64 **p) {
    Runtime *rt = o->rt;
    const i64 *s = *p;
    Word *out = rt->out;
    void *made;
    switch (s[0]) {
    case PLACE:
        *p = s + 2;
        Py_IncRef(o->state->found[s[1]]);
        return o->state->found[s[1]];
    case ONE_OF: /* word, words of all, where each one begins */
        *p = s + s[3 + out[s[1]].i];
        made = given_back(o, p);
        *p = s + s[2];
        return made;
    case OR_NONE: /* word, length */
        *p = s + 3;
        if (out[s[1]].i) return given_back(o, p);
        *p = s + 3 + s[2];
        Py_IncRef(NONE);
        return NONE;
    case INT_OF_FLOAT:
        *p = s + 2;
        return PyLong_FromDouble(out[s[1]].f);
    case OUT_ARRAY: return array_given(o, p);
    case OUT_TUPLE: /* what makes it of its items, or 0; whether it is a list; how many */
        made = s[2] ? PyList_New(s[3]) : PyTuple_New(s[3]);
        *p = s + 4;
        for (i64 k = 0; made && k < s[3]; k++) {
            void *item = given_back(o, p);
            if (!item) {
                Py_DecRef(made);
                return 0;
            }
            if (s[2]) PyList_SetItem(made, k, item); else PyTuple_SetItem(made, k, item);
        }
        if (made && s[1]) {
            void *tuple = made;
            made = PyObject_CallObject((void *)s[1], tuple);
            Py_DecRef(tuple);
        }
        return made;
    }
    return value_of(rt, p);
}

/* Set what a call sets, and give what it gives. w: how many attributes and items, for each its
 * place, its name, whether it is an item, the word that says whether it has been set, or -1, the
 * words of its value, that value; the result. */
static void *left(Out *o, const i64 *w) {
    Runtime *rt = o->rt;
    Word *out = rt->out;
    i64 n = *w++;
    for (i64 k = 0; k < n; k++) {
        void *owner = o->state->found[w[0]], *name = (void *)w[1];
        const i64 *value = w + 5;
        if (w[3] < 0 || out[w[3]].i) {
            void *x = given_back(o, &value);
            if (!x) return 0;
            int failed = w[2] ? PyDict_SetItem(owner, name, x) : PyObject_SetAttr(owner, name, x);
            Py_DecRef(x);
            if (failed) return 0;
        }
        w += 5 + w[4];
    }
    return given_back(o, &w);
}

/* What Python makes of a call that compiled code has ended with this number. */
static void *ended(Form *f, State *s, i64 number, void *const *args) {
    Runtime *rt = &npc_python;
    void *found = PyTuple_New(f->inputs), *given = PyTuple_New(f->arguments), *result = 0;
    void *address = PyLong_FromLong((i64)s), *exit = PyLong_FromLong(number);
    if (found && given && address && exit) {
        for (i64 k = 0; k < f->inputs; k++) {
            Py_IncRef(s->found[k]);
            PyTuple_SetItem(found, k, s->found[k]);
        }
        for (i64 k = 0; k < f->arguments; k++) {
            Py_IncRef(args[k]);
            PyTuple_SetItem(given, k, args[k]);
        }
        result = PyObject_CallFunctionObjArgs(f->ended, address, exit, found, given, (void *)0);
    }
    void *parts[] = {found, given, address, exit};
    for (i64 k = 0; k < 4; k++) if (parts[k]) Py_DecRef(parts[k]);
    return result;
}

/* The lock of a generator's bit generator, which is taken; 0 with an error. */
static void *locked(void *generator, void *bits_of) {
    Runtime *rt = &npc_python;
    static void *lock_of, *acquire;
    if (!lock_of) lock_of = PyUnicode_InternFromString("lock");
    if (!acquire) acquire = PyUnicode_InternFromString("acquire");
    void *bits = PyObject_GetAttr(generator, bits_of);
    void *lock = bits && lock_of && acquire ? PyObject_GetAttr(bits, lock_of) : 0;
    void *taken = lock ? PyObject_VectorcallMethod(acquire, &lock, 1, 0) : 0;
    if (bits) Py_DecRef(bits);
    if (taken) Py_DecRef(taken);
    else if (lock) {
        Py_DecRef(lock);
        lock = 0;
    }
    return lock;
}

static void unlock(void *lock) {
    Runtime *rt = &npc_python;
    static void *release_it;
    if (!release_it) release_it = PyUnicode_InternFromString("release");
    void *done = PyObject_VectorcallMethod(release_it, &lock, 1, 0);
    if (done) Py_DecRef(done); else PyErr_Clear();
    Py_DecRef(lock);
}

/* How many items a list, a dict or a set has, with those of the lists in a list, down to so many
 * levels: a list may hold itself. */
static i64 items_in(void *x, int levels) {
    Runtime *rt = &npc_python;
    i64 size = PyObject_Size(x), all = size;
    if (size < 0) PyErr_Clear();
    if (TYPE(x) != PYTHON_list || !levels) return size < 0 ? 0 : size;
    for (i64 k = 0; k < size; k++) {
        void *item = PyList_GetItem(x, k);
        if (TYPE(item) != PYTHON_list) break; /* they are of one type, as a rule */
        all += items_in(item, levels - 1);
    }
    return all;
}

/* A call has so many items in its lists: it counts for as many as have as many together as the last
 * one that was timed. */
static void weighs(Form *f, i64 items) {
    i64 *left = f->unweighed;
    if (!*left) f->items = items > FEW ? items : FEW;
    else if ((*left -= items / f->items) < 0) *left = 0;
}

/* A call: what it gives, or 0: with an error, or without one where it is not the region's. */
void *npc_called(Form *f, void *const *args) {
    Runtime *rt = &npc_python;
    if (!f->is_live || PyFunction_GetCode(f->of) != f->code ||
        PyFunction_GetDefaults(f->of) != f->defaults ||
        PyFunction_GetKwDefaults(f->of) != f->named || !names_hold(f))
        return 0;
    State *s = f->free;
    if (s)
        f->free = s->next;
    else {
        i64 made = number_of(PyObject_CallObject(f->more, 0));
        if (made == -1) return 0;
        s = (State *)made;
    }
    void *result = 0;
    Word *in = s->words;
    const i64 *p = f->guards;
    i64 n = 0, holds = 1;
    while (holds && n < f->inputs) {
        void *x = fetched(rt, &p, args, s->found);
        if (!x) {
            PyErr_Clear();
            holds = 0;
        } else {
            s->found[n++] = x;
            holds = fits(rt, &p, x, &in);
        }
    }
    void *locks[GENERATORS];
    i64 taken = 0;
    if (holds) { /* objects that may not be one; lists, whose words are the last ones; generators */
        const i64 *lists = p + 1 + *p, *drawn = lists + 1 + *lists;
        for (i64 k = 1; k <= *p; k++)
            for (i64 j = 1; j < k; j++) if (s->found[p[j]] == s->found[p[k]]) holds = 0;
        i64 items = 0;
        for (i64 k = 1; k <= *lists; k++) {
            if (f->unweighed) items += items_in(s->found[lists[k]], 2);
            (in++)->p = s->found[lists[k]];
        }
        if (*lists && f->unweighed) weighs(f, items);
        for (; holds && taken < *drawn; taken++) {
            locks[taken] = locked(s->found[drawn[1 + 2 * taken]], (void *)drawn[2 + 2 * taken]);
            if (!locks[taken]) {
                holds = 0;
                break;
            }
        }
    }
    rt = s->runtime;
    if (holds) {
        rt->threads = 0;
        void *state = PyEval_SaveThread();
        i64 number = ((i64 (*)(Runtime *, Word *))f->function)(rt, s->words);
        PyEval_RestoreThread(state);
        while (taken) unlock(locks[--taken]);
        const i64 *exit = number > 0 ? f->exits[number] : 0;
        if (exit) {
            Out o = {s, rt, {0}, 0};
            f->runs++;
            result = left(&o, exit);
        } else if (number > 0 || number == -1)
            result = ended(f, s, number, args);
    }
    if (rt->first.next) {
        ((void (*)(Runtime *))f->finish)(rt);
        rt->first.next = 0;
    }
    rt = &npc_python;
    while (taken) unlock(locks[--taken]);
    while (n) Py_DecRef(s->found[--n]);
    s->next = f->free;
    f->free = s;
    return result;
}
