/* Calls of compiled functions as they begin, in C: by what `calls.c` knows of them, as the function
 * stands, or by Python.
 */

/* Of compiled functions: where in one its capsule lies, and the method that Python has for calls. */
Class npc_class;

/* Whether modes of torch's are active in this thread. Where they lie is asked once: torch's code is
 * in no cache when a call begins. */
static int has_modes(void) {
    static __thread const i64 *ends;
    if (!modes_at) return number(PyObject_CallObject(modes, 0)) != 0;
    if (!ends) ends = (const i64 *)(modes_of_thread() + modes_at);
    return ends[0] != ends[1];
}

/* Whether a call is nobody's but the function's: no mode of torch's looks at what it does, and
 * torch does not compile the Python that it meets, for which it would have to run the frames. */
static int undisturbed(void) {
    static void *interpreter; /* torch has but one */
    if (has_modes()) return 0;
    if (!interpreter) interpreter = PyInterpreterState_Get();
    if (runs_frames && runs_frames(interpreter) == usual) return 1;
    object *callback = PyObject_CallObject(frames, 0);
    if (!callback) {
        PyErr_Clear();
        return 0;
    }
    Py_DecRef(callback);
    return callback == none;
}

/* Whether a pause lasts: until a job ends beside the program, if the function waits for one, or its
 * time is over, and longer where the program does other things, until so many calls came as take
 * that time, or to its end. Of short calls one of some looks at the clock, which takes as long as
 * many a call. */
static int rests(i64 *pause) {
    if (!*pause || (pause[3] >= 0 && pause[3] != *ended)) return 0;
    if (!(pause[1] & pause[6])) {
        i64 now[2]; /* seconds and nanoseconds */
        clock_gettime(MONOTONIC, now);
        i64 clock = now[0] * 1000000000 + now[1];
        if (clock >= *pause && (pause[1] >= pause[2] || clock > pause[5])) return 0;
    }
    pause[1]++;
    return 1;
}

/* Whether a call runs as it stands now, of which nothing is known (k < 0), or that entry k may not
 * make: as all such calls do, or in a pause. */
static int stands(const Table *t, i64 k, i64 ways) {
    i64 way = k < 0 ? UNSETTLED : t->entries[k]->way;
    if (way != UNSETTLED && way != READ) return 0; /* it is to be timed */
    if (has_cupy()) return 0; /* its arrays stand for tensors */
    if (ways & STANDS && t->stands && PyFunction_GetCode(t->function) == t->stands) return 1;
    return ways & COLD && (k < 0 || t->pause[4]) && rests(t->pause);
}

/* A call that Python makes. all: how many arguments, with those by name. */
NOT_INLINE static object *by_python(object *self, object *const *args, i64 count, i64 all,
                                    object *names) {
    object *few[MOST], **given = all < MOST ? few : PyMem_Malloc((all + 1) * sizeof *given);
    if (!given) return PyErr_NoMemory();
    given[0] = self;
    for (i64 k = 0; k < all; k++) given[1 + k] = args[k];
    object *result = PyObject_Vectorcall(npc_class.call, given, count + 1, names);
    if (given != few) PyMem_Free(given);
    return result;
}

/* A call as the function stands. Python's functions lead to what calls them. */
static object *plainly(object *f, object *const *args, u64 flagged, object *names) {
    if (((const Array *)f)->type != function || !calls_at)
        return PyObject_Vectorcall(f, args, flagged, names);
    object *(*call)(object *, object *const *, u64, object *) = *(void **)((char *)f + calls_at);
    return call(f, args, flagged, names);
}

/* A call of a compiled function. Where nothing is known of such calls, Python makes it. flagged: how
 * many arguments are given by place, and in the highest bit, whether the place before them may be
 * written to. Of Python's kind VECTORCALL. */
object *npc_vectorcall(object *self, object *const *args, u64 flagged, object *names) {
    const void *capsule = *(void **)((char *)self + npc_class.table);
    i64 count = flagged & ~0ul >> 1, ways = *captures ? 0 : *allowed;
    i64 all = names ? count + PyTuple_Size(names) : count;
    if (capsule && ways) {
        const Table *t = ((const Capsule *)capsule)->pointer;
        i64 k = find(t, 0, args, all, names);
        for (; k >= 0; k = find(t, k + 1, args, all, names)) {
            Entry *e = t->entries[k];
            if (!is_due(t, e, ways) || !undisturbed()) break;
            if (e->way == PLAIN) return plainly(e->function, args, flagged, names);
            int is_read = e->way == READ;
            object *result = run(e, args);
            if (is_read && !result && !PyErr_Occurred()) continue; /* another one may be for it */
            if (result != t->miss) return result;
            Py_DecRef(result);
            break;
        }
        if (stands(t, k, ways) && undisturbed())
            return plainly(t->function, args, flagged, names);
    }
    return by_python(self, args, count, all, names);
}

/* The same as the slot of their class. */
object *npc_enter(object *self, object *positional, object *by_name) {
    i64 count = PyTuple_Size(positional), named = by_name ? PyDict_Size(by_name) : 0, place = 0;
    object *const *args = items_of(positional);
    if (!named) return npc_vectorcall(self, args, count, 0);
    object *names = PyTuple_New(named), *name, *value, *result = 0;
    if (!names) return 0;
    object **given = PyMem_Malloc((count + named) * sizeof *given);
    if (!given) {
        PyErr_NoMemory();
    } else {
        for (i64 k = 0; k < count; k++) given[k] = args[k];
        for (i64 k = 0; k < named && PyDict_Next(by_name, &place, &name, &value); k++) {
            PyTuple_SetItem(names, k, held(name));
            given[count + k] = held(value);
        }
        result = npc_vectorcall(self, given, count, names);
        for (i64 k = 0; k < named; k++) Py_DecRef(given[count + k]);
        PyMem_Free(given);
    }
    Py_DecRef(names);
    return result;
}
