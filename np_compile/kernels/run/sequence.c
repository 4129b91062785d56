/* A list of kernels that run one after the other, as one call.
 *
 * Each step is a section of a program, or a group of nests that run in bands: part by part, all
 * nests in each. A program has its own array of pointers. Most pointers are the same in every run.
 * Those that lead to a caller's arrays, or to new ones, are links: an object of NumPy's, whose data
 * pointer is read here, and an offset in bytes. The tables are declared in `sequence.py`.
 */

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
    Group *g = step->memory;
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
        *(char **)l->slot = *(char **)((char *)s->objects[l->object] + s->data) + l->offset;
    }
    for (i64 k = 0; k < s->count; k++)
        if (!ran(&s->steps[k], threads, s->run)) return k;
    return s->count;
}
