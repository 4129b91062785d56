/* A list of kernels that run one after the other, as one call.
 *
 * Each step is a section of a program with its own array of pointers. Most pointers are the same in
 * every run. Those that lead to a caller's arrays, or to new ones, are links: an object of NumPy's,
 * whose data pointer is read here, and an offset in bytes.
 */
typedef long i64;
typedef void (*run_t)(void (*)(void *, i64, i64), void *, i64, i64, int);

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

/* The number of steps that ran; a step that fails is the last, and not counted. */
i64 npc_sequence(const Sequence *s, int threads) {
    for (i64 k = 0; k < s->linked; k++) {
        const Link *l = &s->links[k];
        *l->slot = *(char *const *)(s->objects[l->object] + s->data) + l->offset;
    }
    for (i64 k = 0; k < s->count; k++)
        if (s->steps[k].section(s->steps[k].memory, threads, s->run)) return k;
    return s->count;
}
