/* Kernels launched one after the other. `Launch` is declared in `driver.py`. */

/* The driver's cuLaunchKernel: function, blocks, threads, shared bytes, stream, parameters. */
int (*npc_launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void *, void **, void **);

/* 0, or the error at which it ended. */
int npc_launches(const Launch *launches, i64 count, i64 stream) {
    for (i64 k = 0; k < count; k++) {
        const Launch *l = &launches[k];
        void *parameters = l->argument;
        int error = npc_launch_kernel(l->function, l->blocks, 1, 1, l->threads, 1, 1, l->shared,
                                      (void *)stream, &parameters, 0);
        if (error) return error;
    }
    return 0;
}
