/* A pool of threads for loops over chunks.
 *
 *     npc_run(body, context, count, grain, threads)
 *
 * calls body(context, begin, end) for the chunks [0, grain), [grain, 2 grain), ... of [0, count), each
 * once. The chunks do not depend on the number of threads, so what is summed up chunk by chunk does
 * not either.
 *
 * The caller takes chunks itself from the beginning, and helpers take what is left when they come, from
 * the end: each works on memory of its own, much of it the same in the next job on the same arrays. The
 * caller waits only for a helper that has taken a chunk and has not finished it, never for one that
 * has not come: where another process keeps the other cores busy, the call costs what it costs with
 * one thread.
 *
 * Claims. `ticket` holds how many helpers may take part, and which chunks nobody has taken, from
 * `first` to before `end`. A chunk is taken by a compare-and-swap, by the caller from (limit, first,
 * end) to (limit, first + 1, end), by a helper whose index is below the limit to (limit, first,
 * end - 1).
 *
 *  1. The caller publishes a job by storing a ticket, and stores the next one only after every chunk
 *     taken of this one has been reported in `finished`. Until then nothing is left in the ticket.
 *  2. A claim is made on what the ticket says at that moment, and is a claim on the job of that
 *     moment. A helper that comes late, between two jobs or in a later one, finds nothing left or
 *     takes a chunk of that later job, as it may: nothing it has read before the claim is used after
 *     it, but the ticket, which the swap has confirmed.
 *  3. So between a claim and its report the fields of the job stand still, and they are plain fields.
 *     The caller writes them before it stores the ticket, the helper reads them after its swap; the
 *     helper's report comes before the caller's look at `finished`, and that before the next writing.
 *
 * Sleep. A helper says `asleep`, looks at the ticket again, and sleeps while the word says so; the
 * caller publishes the ticket and then looks at the word. All four are sequentially consistent, so
 * one of them sees the other. The caller's own wait for `finished` is made in the same way; a wake
 * that comes after its job is over finds a word that is 0, or causes one look more.
 *
 * One job at a time uses the helpers. Who calls meanwhile, from another thread or from within a body,
 * runs all chunks alone.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__) && !defined(NPC_PORTABLE)
#define NPC_LINUX 1
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#if defined(__x86_64__)
#include <xmmintrin.h>
#define PAUSE() _mm_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("isb")
#else
#define PAUSE() ((void)0)
#endif

#ifndef NPC_HELPER_SPIN
#define NPC_HELPER_SPIN 60000 /* ns that a helper looks out for the next job before it sleeps */
#endif
#ifndef NPC_HELPER_LONG
#define NPC_HELPER_LONG 500000 /* the same, of one who is called again and again so soon after that */
#endif
#ifndef NPC_CALLS
#define NPC_CALLS 16 /* such calls in a row, after which it does */
#endif
#ifndef NPC_AWAY
#define NPC_AWAY 50000 /* ns between two looks by which somebody else has had the core meanwhile */
#endif
#ifndef NPC_CALLER_SPIN
#define NPC_CALLER_SPIN 20000 /* ns that the caller looks out for the last chunks before it sleeps */
#endif
#ifndef NPC_WORTH
#define NPC_WORTH 30000 /* ns of work ahead from which sleeping helpers are called */
#endif
#define MAX_HELPERS 255
#define STACK (2L << 20)
#ifndef MOST_CHUNKS
#define MOST_CHUNKS 0xffffffL /* in one job; more are run as several */
#endif
#define RECHECK 1024 /* jobs between two looks at how many cores there are */

typedef void (*Body)(void *context, long begin, long end);

typedef struct {
    _Alignas(128) _Atomic uint32_t asleep;
} Helper;

static struct {
    Body body;
    void *context;
    long count, grain, base; /* base: number of the first chunk */
    unsigned control;               /* the caller's floating-point modes */
} job;

static _Alignas(128) _Atomic uint64_t ticket;
static _Alignas(128) _Atomic uint64_t finished; /* chunks of this job that helpers have finished */
static _Atomic uint32_t waiting;                /* the caller sleeps until `finished` grows */
static _Alignas(128) atomic_flag busy = ATOMIC_FLAG_INIT;
static _Atomic int home; /* -1, where that is not known, or the core that the caller of this job began on */
static Helper helpers[MAX_HELPERS];
/* Of the holder of `busy`: */
static int started, startable = MAX_HELPERS;
static int eager; /* call the helpers at the beginning of a job, not when it has proved to be long */
static int cores;
static unsigned jobs;

/* ---- sleeping and waking: a word holds 1 while its one sleeper is to sleep; `wake` says whether
 * there was one ---- */

#ifdef NPC_LINUX

static void sleep_on(_Atomic uint32_t *word) {
    while (atomic_load(word))
        syscall(SYS_futex, (uint32_t *)word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static int wake(_Atomic uint32_t *word) {
    if (!atomic_load(word) || !atomic_exchange(word, 0))
        return 0;
    syscall(SYS_futex, (uint32_t *)word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return 1;
}

#else

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void sleep_on(_Atomic uint32_t *word) {
    pthread_mutex_lock(&mutex);
    while (atomic_load(word))
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static int wake(_Atomic uint32_t *word) {
    if (!atomic_load(word))
        return 0;
    pthread_mutex_lock(&mutex);
    atomic_store(word, 0);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return 1;
}

#endif

/* ---- what the machine says ---- */

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int here(void) {
#ifdef NPC_LINUX
    return sched_getcpu();
#else
    return -1;
#endif
}

#ifdef NPC_LINUX
typedef union {
    cpu_set_t cores;
    unsigned long words[sizeof(cpu_set_t) / sizeof(long)];
} Cores;
static _Atomic unsigned long allowed[sizeof(cpu_set_t) / sizeof(long)]; /* the cores of the caller */
#endif

static int count_cores(void) {
#ifdef NPC_LINUX
    Cores set;
    if (sched_getaffinity(0, sizeof set.cores, &set.cores) == 0) {
        for (unsigned k = 0; k < sizeof set / sizeof(long); k++)
            atomic_store(&allowed[k], set.words[k]);
        return CPU_COUNT(&set.cores);
    }
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Go to another core. 0 if there is none. */
static int leave(int core) {
#ifdef NPC_LINUX
    Cores set;
    for (unsigned k = 0; k < sizeof set / sizeof(long); k++)
        set.words[k] = atomic_load(&allowed[k]);
    CPU_CLR(core, &set.cores);
    return CPU_COUNT(&set.cores) && !sched_setaffinity(0, sizeof set.cores, &set.cores);
#else
    (void)core;
    return 0;
#endif
}

/* The modes (rounding, denormals to zero) belong to a thread. Chunks are to be computed in the
 * caller's, whoever computes them. The low six bits are flags and say what happened. */
static unsigned modes(void) {
#ifdef __x86_64__
    return _mm_getcsr() & ~63u;
#else
    return 0;
#endif
}

static void set_modes(unsigned control) {
#ifdef __x86_64__
    if (modes() != control)
        _mm_setcsr(control);
#else
    (void)control;
#endif
}

/* ---- chunks ---- */

static uint64_t ticket_of(int limit, long chunks) { return (uint64_t)limit << 48 | (uint64_t)chunks; }

static long first_of(uint64_t t) { return (long)(t >> 24 & 0xffffff); }

static long end_of(uint64_t t) { return (long)(t & 0xffffff); }

static long left_of(uint64_t t) { return end_of(t) - first_of(t); }

static int open_to(int index, uint64_t t) { return left_of(t) && (uint64_t)index < t >> 48; }

/* Take the first or the last chunk that the ticket, as last seen, has. Its number in the job, or -1 if
 * the ticket is another one by now. */
static long claim(uint64_t *seen, int last) {
    uint64_t t = *seen;
    if (!atomic_compare_exchange_weak(&ticket, seen, last ? t - 1 : t + (1L << 24)))
        return -1;
    return job.base + (last ? end_of(t) - 1 : first_of(t));
}

static void run_chunk(Body body, void *context, long count, long grain, long chunk) {
    long begin = chunk * grain;
    body(context, begin, count - begin > grain ? begin + grain : count);
}

static void run_all(Body body, void *context, long count, long grain, long chunks) {
    for (long chunk = 0; chunk < chunks; chunk++)
        run_chunk(body, context, count, grain, chunk);
}

/* Take and run chunks until none is left; how many there were. Called by one who knows that the job is
 * the current one, the caller or the taker of a chunk not yet reported, with the ticket as last seen. */
static long take_chunks(uint64_t seen, int last) {
    long taken = 0;
    while (left_of(seen)) {
        long chunk = claim(&seen, last);
        if (chunk >= 0) {
            run_chunk(job.body, job.context, job.count, job.grain, chunk);
            taken++;
            seen = atomic_load(&ticket);
        }
    }
    return taken;
}

/* ---- helpers ---- */

/* Take a chunk, then all that are left. 0 if there was none to take. */
static int help(int index) {
    uint64_t seen = atomic_load(&ticket);
    long chunk;
    do {
        if (!open_to(index, seen))
            return 0;
        chunk = claim(&seen, 1);
    } while (chunk < 0);
    /* The job stands still from here to the report. */
    set_modes(job.control);
    run_chunk(job.body, job.context, job.count, job.grain, chunk);
    long taken = 1 + take_chunks(atomic_load(&ticket), 1);
    atomic_fetch_add(&finished, (uint64_t)taken);
    wake(&waiting);
    return 1;
}

/* Leave the caller's core; whether that is done. On the caller's core a helper would keep the
 * caller from its work; and one that sleeps there stays there, however idle the others are. */
static int out_of_the_way(void) {
    int core = atomic_load(&home);
    return core < 0 || here() != core || leave(core);
}

/* Help, until no work has come for so many ns. 0 if somebody else needs the core. */
static int look_out(int index, long patience) {
    out_of_the_way(); /* or help from here: the caller may be one that waits */
    long last = now(), end = last + patience;
    for (;;) {
        for (int i = 0; i < 32; i++) {
            if (help(index)) {
                last = now();
                end = last + patience;
                break;
            }
            PAUSE();
        }
        /* On a core that it has to share, it would have used up its time when work comes, and stop in
         * the middle of a chunk. */
        long time = now();
        if (time - last > NPC_AWAY || !out_of_the_way())
            return 0;
        if (time >= end)
            return 1;
        last = time;
    }
}

/* A program often calls at equal intervals. Where they are short, a helper that sleeps comes late each
 * time, and to wake it takes the caller's time. */
static void *helper_main(void *argument) {
    int index = (int)(intptr_t)argument;
    Helper *self = &helpers[index];
    for (int calls = 0;;) { /* in a row that came soon after it fell asleep */
        if (!look_out(index, calls < NPC_CALLS ? NPC_HELPER_SPIN : NPC_HELPER_LONG))
            calls = 0;
        atomic_store(&self->asleep, 1);
        long begin = now();
        if (open_to(index, atomic_load(&ticket)))
            atomic_store(&self->asleep, 0);
        else
            sleep_on(&self->asleep);
        if (now() - begin >= NPC_HELPER_LONG)
            calls = 0;
        else if (calls < NPC_CALLS)
            calls++;
    }
    return NULL;
}

static int start_helper(int index) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes))
        return 0;
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Signals go to the threads that the program knows. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&helpers[index].asleep, 0);
    int failed = pthread_create(&thread, &attributes, helper_main, (void *)(intptr_t)index);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}

/* Start and wake `wanted` helpers; how many there were to start or wake. */
static int call_helpers(int wanted) {
    int called = 0;
    for (; started < wanted && started < startable; called++)
        if (start_helper(started))
            started++;
        else
            startable = started; /* the system gives no more threads: do not ask each time */
    for (int i = 0; i < wanted && i < started; i++)
        called += wake(&helpers[i].asleep);
    return called;
}

/* A forked child has the caller's thread only. */
static void forget_helpers(void) {
    started = 0;
    startable = MAX_HELPERS;
    cores = 0;
    atomic_store(&waiting, 0);
    atomic_store(&ticket, 0);
    atomic_flag_clear(&busy);
#ifndef NPC_LINUX
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&changed, NULL);
#endif
}

__attribute__((constructor)) static void prepare(void) {
    pthread_atfork(NULL, NULL, forget_helpers);
}

/* ---- the caller ---- */

static void await(uint64_t target) {
    if (atomic_load(&finished) == target)
        return;
    long end = now() + NPC_CALLER_SPIN;
    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load(&finished) == target)
                return;
            PAUSE();
        }
    } while (now() < end);
    for (;;) {
        atomic_store(&waiting, 1);
        if (atomic_load(&finished) == target)
            break;
        sleep_on(&waiting);
    }
    atomic_store(&waiting, 0);
}

/* To wake a thread costs the one who wakes it 5 to 12 us, and a short job is over before it has come. So
 * once a call was in vain, jobs begin without one (a helper that is awake sees them anyhow), and the
 * helpers are called as soon as the chunks done foretell that the rest is worth it.
 *
 * Take chunks until that is so, or none is left; how many there were. */
static long take_until_long(uint64_t *seen) {
    long begin = now(), taken = 0;
    while (left_of(*seen)) {
        long chunk = claim(seen, 0);
        if (chunk < 0)
            continue;
        run_chunk(job.body, job.context, job.count, job.grain, chunk);
        taken++;
        *seen = atomic_load(&ticket);
        if ((double)(now() - begin) * (double)left_of(*seen) > (double)NPC_WORTH * taken)
            break;
    }
    return taken;
}

static void run_shared(Body body, void *context, long count, long grain, long base, long chunks,
                       int wanted) {
    job.body = body;
    job.context = context;
    job.count = count;
    job.grain = grain;
    job.base = base;
    job.control = modes();
    atomic_store(&finished, 0);
    atomic_store(&home, here());
    uint64_t seen = ticket_of(wanted, chunks);
    atomic_store(&ticket, seen);
    long taken = 0;
    if (eager) {
        int called = call_helpers(wanted);
        taken = take_chunks(seen, 0);
        if (called && taken == chunks)
            eager = 0;
    } else {
        taken = take_until_long(&seen);
        if (left_of(seen)) {
            eager = 1;
            call_helpers(wanted);
            taken += take_chunks(seen, 0);
        }
    }
    await((uint64_t)(chunks - taken));
}

void npc_run(Body body, void *context, long count, long grain, int threads) {
    if (count <= 0)
        return;
    if (grain < 1)
        grain = 1;
    long chunks = count / grain + (count % grain != 0);
    if (threads <= 1 || chunks == 1 || atomic_flag_test_and_set(&busy)) {
        run_all(body, context, count, grain, chunks);
        return;
    }
    if (!cores || jobs++ % RECHECK == 0)
        cores = count_cores();
    if (cores < 2) {
        atomic_flag_clear(&busy);
        run_all(body, context, count, grain, chunks);
        return;
    }
    long most = threads < chunks ? threads : chunks;
    int wanted = (int)(most <= MAX_HELPERS ? most - 1 : MAX_HELPERS);
    for (long base = 0; base < chunks; base += MOST_CHUNKS) {
        long part = chunks - base < MOST_CHUNKS ? chunks - base : MOST_CHUNKS;
        run_shared(body, context, count, grain, base, part, wanted);
    }
    atomic_flag_clear(&busy);
}

/* How many helpers there are, for tests. */
int npc_helpers(void) { return started; }
