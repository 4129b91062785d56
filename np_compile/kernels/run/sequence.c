/* A list of kernels that run one after the other, as one call.
 *
 * Each step is a section of a program, or a group of nests that run in bands: part by part, all nests
 * in each. A program has its own array of pointers. Most pointers are the same in
 * every run. Those that lead to a caller's arrays, or to new ones, are links: an object of NumPy's,
 * whose data pointer is read here, and an offset in bytes.
 */
typedef long i64;
typedef void (*body_t)(void *, i64, i64);
typedef void (*run_t)(body_t, void *, i64, i64, int);

typedef struct {
    body_t body;
    void **memory;
    i64 per; /* iterations of a part */
} Member;

typedef struct {
    const Member *members;
    i64 count, parts, band, grain;
} Group;

/* A section, or a group, whose address `memory` is then. */
typedef struct {
    int (*section)(void **memory, int threads, run_t run);
    void **memory;
} Step;

typedef struct {
    char **slot;
    i64 object, offset;
} Link;

typedef struct {
    const Step *steps;
    i64 count;
    const Link *links;
    i64 linked;
    char *const *objects;
    i64 data; /* offset of the data pointer in an object */
    run_t run;
} Sequence;

/* Some parts of a group, band by band. */
static void bands(void *context, i64 begin, i64 end) {
    const Group *g = context;
    for (i64 lo = begin; lo < end; lo += g->band) {
        i64 hi = end - lo > g->band ? lo + g->band : end;
        for (i64 k = 0; k < g->count; k++) {
            const Member *m = &g->members[k];
            m->body(m->memory, lo * m->per, hi * m->per);
        }
    }
}

static int ran(const Step *step, int threads, run_t run) {
    if (step->section) return !step->section(step->memory, threads, run);
    Group *g = (Group *)step->memory;
    if (g->grain < g->parts)
        run(bands, g, g->parts, g->grain, threads);
    else
        bands(g, 0, g->parts);
    return 1;
}

/* The number of steps that ran; a step that fails is the last, and not counted. */
i64 npc_sequence(const Sequence *s, int threads) {
    for (i64 k = 0; k < s->linked; k++) {
        const Link *l = &s->links[k];
        *l->slot = *(char *const *)(s->objects[l->object] + s->data) + l->offset;
    }
    for (i64 k = 0; k < s->count; k++)
        if (!ran(&s->steps[k], threads, s->run)) return k;
    return s->count;
}
