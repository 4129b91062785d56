"""The thread pool: each chunk once, no more threads than asked for, nobody waited for in vain."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from np_compile.kernels import build
from np_compile.kernels.run import pool

from ... import fresh
from ...support import wait_for

COMPILER = next((p for p in map(shutil.which, ("cc", "gcc", "clang")) if p), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler on the path")
linux = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about its threads")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
two_cores = pytest.mark.skipif(CORES < 2, reason="needs two cores")

BODIES = """
#include <pthread.h>
#include <time.h>
#include <stdint.h>
#include <string.h>

typedef void (*Run)(void (*)(void *, long, long), void *, long, long, int);
typedef struct {
    Run run;
    long grain;
    int *counts;
    uintptr_t *threads;
    long *sizes;
    long pause;
    int meets, inside, met;
} Job;

static void wait_for(int *what) { /* a minute at most */
    struct timespec t = {0, 1000000};
    for (int k = 0; k < 60000 && !__atomic_load_n(what, __ATOMIC_SEQ_CST); k++)
        nanosleep(&t, 0);
}

static void mark(void *p, long begin, long end) {
    Job *job = p;
    long chunk = begin / job->grain;
    if (begin % job->grain)
        job->counts[0] += 1000;
    for (long i = begin; i < end; i++)
        __atomic_fetch_add(&job->counts[i], 1, __ATOMIC_RELAXED);
    job->threads[chunk] = (uintptr_t)pthread_self();
    job->sizes[chunk] = end - begin;
    if (job->pause) {
        struct timespec t = {0, job->pause};
        nanosleep(&t, 0);
    }
    if (job->meets && begin) { /* the first one is made before helpers are called */
        if (__atomic_add_fetch(&job->inside, 1, __ATOMIC_SEQ_CST) == 2)
            __atomic_store_n(&job->met, 1, __ATOMIC_SEQ_CST);
        wait_for(&job->met);
        __atomic_sub_fetch(&job->inside, 1, __ATOMIC_SEQ_CST);
    }
}

/* Which thread ran each chunk, how long the chunks were, and how often each index was met. meets:
 * chunks wait until two are being run. */
void marked(Run run, long count, long grain, int threads, long pause, int *counts,
            uintptr_t *who, long *sizes, int meets) {
    Job job = {run, grain, counts, who, sizes, pause, meets};
    run(mark, &job, count, grain, threads);
}

static void hold(void *p, long begin, long end) {
    int *state = p;
    struct timespec t = {0, 1000000};
    nanosleep(&t, 0);
    if (!begin)
        return;
    __atomic_fetch_add(state, 1, __ATOMIC_SEQ_CST);
    wait_for(state + 1);
}
/* Chunks, but for the first one, say that they have begun, and wait until they may end. */
void held(Run run, int threads, int *state) { run(hold, state, 40, 1, threads); }

static void inner(void *p, long begin, long end) {
    for (long i = begin; i < end; i++)
        __atomic_fetch_add((int *)p + i, 1, __ATOMIC_RELAXED);
}
static void outer(void *p, long begin, long end) {
    Job *job = p;
    for (long i = begin; i < end; i++)
        job->run(inner, job->counts, job->grain, 3, 4);
}
void nested(Run run, long outside, long inside, int *counts) {
    Job job = {run, inside, counts};
    run(outer, &job, outside, 1, 4);
}

#ifdef __x86_64__
#include <xmmintrin.h>
static void read_modes(void *p, long begin, long end) {
    ((unsigned *)p)[begin] = _mm_getcsr();
    struct timespec t = {0, 1000000};
    nanosleep(&t, 0);
}
void modes(Run run, unsigned set, unsigned *seen, long count) {
    unsigned before = _mm_getcsr();
    _mm_setcsr(set);
    run(read_modes, seen, count, 1, 2);
    _mm_setcsr(before);
}
#endif
"""

# A program of its own, for the sanitizers: callers that compete, more threads than cores, jobs so
# short that helpers come late to most of them, and results that are checked without atomics, so
# that a missing order between a chunk and the end of its job is a race.
STRESS = """
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
typedef void (*Body)(void *, long, long);
void npc_run(Body body, void *context, long count, long grain, int threads);
typedef struct { long *values; long add; } Job;
static void add(void *p, long begin, long end) {
    Job *job = p;
    if ((begin + job->add) % 7 == 0)
        sched_yield();
    for (long i = begin; i < end; i++)
        job->values[i] += job->add + i;
}
static void *caller(void *p) {
    long seed = (long)p;
    long values[64];
    for (long round = 0; round < ROUNDS; round++) {
        seed = (seed * 1103515245 + 12345) & 0x7fffffff;
        long count = 1 + seed % 64, grain = 1 + seed / 64 % 5;
        Job *job = malloc(sizeof *job);
        job->values = values;
        job->add = round;
        for (long i = 0; i < count; i++)
            values[i] = -i;
        npc_run(add, job, count, grain, 1 + seed / 320 % 6);
        free(job);
        for (long i = 0; i < count; i++)
            if (values[i] != round) {
                printf("index %ld of %ld: %ld, not %ld\\n", i, count, values[i], round);
                exit(1);
            }
    }
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, caller, (void *)(i + 1));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    caller((void *)4);
    puts("done");
    return 0;
}
"""


@pytest.fixture(scope="module")
def bodies() -> ctypes.CDLL:
    return build.load_all([(pool.source(), "pool"), (BODIES, "bodies")])[1]


@pytest.fixture(scope="module")
def run() -> ctypes.c_void_p:
    return ctypes.c_void_p(pool.run_address())


class Marks:
    """What a job of marking bodies left behind."""

    def __init__(
        self,
        bodies: ctypes.CDLL,
        run: ctypes.c_void_p,
        count: int,
        grain: int,
        threads: int,
        pause: float = 0,
        meets: bool = False,
    ):
        chunks = -(-count // grain)
        counts, sizes = (ctypes.c_int * max(count, 1))(), (ctypes.c_long * max(chunks, 1))()
        who = (ctypes.c_size_t * max(chunks, 1))()
        nanoseconds = ctypes.c_long(int(pause * 1e9))
        bodies.marked(
            run,
            ctypes.c_long(count),
            ctypes.c_long(grain),
            threads,
            nanoseconds,
            counts,
            who,
            sizes,
            meets,
        )
        self.counts, self.sizes = list(counts)[:count], list(sizes)[:chunks]
        self.threads = set(list(who)[:chunks])


@pytest.mark.parametrize("threads", [0, 1, 2, 3, 8])
@pytest.mark.parametrize(
    ("count", "grain"), [(0, 1), (1, 1), (2, 1), (7, 3), (9, 3), (1000, 1), (1000, 999), (5, 100)]
)
def test_each_index_once_in_chunks_of_the_grain(
    bodies: ctypes.CDLL, run: ctypes.c_void_p, count: int, grain: int, threads: int
) -> None:
    for _ in range(20):
        marks = Marks(bodies, run, count, grain, threads)
        assert marks.counts == [1] * count
        assert marks.sizes == [min(grain, count - b) for b in range(0, count, grain)]


@two_cores
def test_helpers_take_part(bodies: ctypes.CDLL, run: ctypes.c_void_p) -> None:
    marks = Marks(bodies, run, 40, 1, 4, pause=0.001, meets=True)
    assert 2 <= len(marks.threads) <= 4
    assert pool.library().npc_helpers() >= 3


def held(bodies: ctypes.CDLL, run: ctypes.c_void_p) -> tuple[threading.Thread, ctypes.Array]:
    """A thread that uses the pool, and what ends that: its second item."""
    state = (ctypes.c_int * 2)()
    thread = threading.Thread(target=bodies.held, args=(run, 2, state), daemon=True)
    thread.start()
    wait_for(lambda: state[0])
    return thread, state


def another_pool(*lines: str) -> ctypes.c_void_p:
    """The address of `npc_run` in a pool of its own, with these lines before its text."""
    library = build.load("\n".join([*lines, pool.source()]), name="pool")
    return ctypes.cast(library.npc_run, ctypes.c_void_p)


@two_cores
@pytest.mark.parametrize(
    "lines",
    [
        ["#define NPC_PORTABLE"],
        # All on one core, which none of them can leave.
        ["#define _GNU_SOURCE", "#include <sched.h>", "#define sched_getcpu() 0",
         "#define sched_setaffinity(thread, size, cores) (-1)"],
    ],
    ids=["cores unknown", "cores kept"],
)  # fmt: skip
def test_helpers_take_part_where_they_cannot_leave(bodies: ctypes.CDLL, lines: list[str]) -> None:
    marks = Marks(bodies, another_pool(*lines), 40, 1, 4, pause=0.001, meets=True)
    assert 2 <= len(marks.threads) <= 4


@two_cores
@pytest.mark.skipif(sys.platform != "linux", reason="threads have no masks of cores here")
def test_helpers_leave_the_caller_s_core(bodies: ctypes.CDLL) -> None:
    home = min(os.sched_getaffinity(0))
    fake = "#define _GNU_SOURCE", "#include <sched.h>", f"#define sched_getcpu() {home}"
    before = set(os.listdir("/proc/self/task"))
    Marks(bodies, another_pool(*fake), 40, 1, 4, pause=0.01)
    helpers = set(os.listdir("/proc/self/task")) - before
    assert helpers
    for thread in map(int, helpers):
        wait_for(lambda t=thread: os.sched_getaffinity(t) == os.sched_getaffinity(0) - {home})


@two_cores
def test_no_more_threads_than_asked_for(bodies: ctypes.CDLL, run: ctypes.c_void_p) -> None:
    Marks(bodies, run, 40, 1, 5, pause=0.002)
    for threads in (1, 2, 3):
        for _ in range(5):
            assert len(Marks(bodies, run, 20, 1, threads, pause=0.001).threads) <= threads
    me = threading.get_ident()
    assert Marks(bodies, run, 20, 1, 1).threads == {me}


def test_several_callers_at_once(bodies: ctypes.CDLL, run: ctypes.c_void_p) -> None:
    wrong: list[object] = []

    def call() -> None:
        for i in range(300):
            marks = Marks(bodies, run, 50 + i % 7, 1 + i % 5, 3)
            if set(marks.counts) != {1}:
                wrong.append(marks.counts)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_second_caller_runs_alone(bodies: ctypes.CDLL, run: ctypes.c_void_p) -> None:
    first, state = held(bodies, run)
    marks = Marks(bodies, run, 10, 1, 2, pause=0.001)
    assert first.is_alive()
    assert marks.threads == {threading.get_ident()}
    state[1] = 1
    first.join()


def test_calls_within_a_body(bodies: ctypes.CDLL, run: ctypes.c_void_p) -> None:
    counts = (ctypes.c_int * 100)()
    for _ in range(50):
        bodies.nested(run, ctypes.c_long(20), ctypes.c_long(100), counts)
    assert list(counts) == [20 * 50] * 100


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="reads the x86 control register")
def test_helpers_compute_in_the_modes_of_the_caller(
    bodies: ctypes.CDLL, run: ctypes.c_void_p
) -> None:
    for modes in (0x1F80, 0x9FC0, 0x1F80 | 0x6000):  # usual; denormals to zero; towards zero
        seen = (ctypes.c_uint * 16)()
        bodies.modes(run, modes, seen, ctypes.c_long(16))
        assert {value & ~0x3F for value in seen} == {modes}


def helper_ids(call: Callable[[], object]) -> set[int]:
    """The system's numbers of the threads that a call has started."""
    before = set(os.listdir("/proc/self/task"))
    call()
    return {int(name) for name in set(os.listdir("/proc/self/task")) - before}


PRELUDE = f"""
import ctypes, os, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from np_compile.kernels.run import pool
from tests.kernels.run import test_pool as t
bodies = t.build.load(t.BODIES)
run = ctypes.c_void_p(pool.run_address())
def use(threads=4, meets=False):
    return t.Marks(bodies, run, 40, 1, threads, 0.001, meets)
"""


def program(text: str) -> str:
    """What a process of its own prints that runs a text after the prelude."""
    done = fresh.run(PRELUDE + text, quiet=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@linux
@two_cores
def test_threads_come_when_needed_and_take_no_signals() -> None:
    out = program("""
assert pool.library().npc_helpers() == 0
use(1)
assert pool.library().npc_helpers() == 0
ids = t.helper_ids(use)
assert len(ids) == pool.library().npc_helpers() == 3, ids
for i in ids:
    for line in open(f"/proc/self/task/{i}/status"):
        if line.startswith("SigBlk"):
            assert int(line.split()[1], 16) & 0x7FFFFFFF & ~(1 << 8 | 1 << 18) == 0x7FFBFEFF, line
            print("blocked")
""")
    assert out.count("blocked") == 3


@linux
def test_one_core_needs_no_helpers() -> None:
    program("""
os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
assert len(use().threads) == 1
assert pool.library().npc_helpers() == 0
""")


@two_cores
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_its_own_helpers() -> None:
    program("""
assert len(use(meets=True).threads) > 1
child = os.fork()
if child == 0:
    ok = pool.library().npc_helpers() == 0
    marks = use(meets=True)
    ok = ok and len(marks.threads) > 1 and set(marks.counts) == {1}
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
assert set(use().counts) == {1}
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_uses_the_pool() -> None:
    program("""
thread, state = t.held(bodies, run)
child = os.fork()
if child == 0:
    os._exit(0 if set(use().counts) == {1} else 1)
assert os.waitpid(child, 0)[1] == 0
state[1] = 1
thread.join()
""")


def test_the_process_ends_while_helpers_work() -> None:
    program("""
use()
_, state = t.held(bodies, run)
t.wait_for(lambda: state[0] == 2 or t.CORES < 2)
""")


@linux
@two_cores
def test_a_helper_that_does_not_come_is_not_waited_for() -> None:
    """It stops where it looks which core it is on, before it looks for work."""
    program("""
run = t.another_pool(
    "#define _GNU_SOURCE", "#include <sched.h>", "#include <sys/syscall.h>", "#include <unistd.h>",
    "static int stops(void) { while (syscall(SYS_gettid) != getpid()) pause(); return 0; }",
    "#define sched_getcpu() stops()",
)
def several():
    for _ in range(20):
        marks = use(2)
        assert marks.counts == [1] * 40
        assert len(marks.threads) == 1
assert len(t.helper_ids(several)) == 1
""")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plain", "-O2"),
        ("parts", "-O2 -DMOST_CHUNKS=3 -DNPC_WORTH=0"),
        ("portable", "-O2 -DNPC_PORTABLE"),
        ("sleepy", "-O2 -DNPC_HELPER_SPIN=0 -DNPC_HELPER_LONG=0 -DNPC_CALLER_SPIN=0 -DNPC_WORTH=0"),
        ("threads", "-O1 -g -fsanitize=thread -DNPC_WORTH=0"),
        ("threads-sleepy", "-O1 -g -fsanitize=thread -DNPC_HELPER_SPIN=0 -DNPC_WORTH=0"),
        ("threads-portable", "-O1 -g -fsanitize=thread -DNPC_PORTABLE -DNPC_WORTH=0"),
        ("memory", "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover -DNPC_WORTH=0"),
    ],
)
def test_stress(name: str, options: str, tmp_path: Path) -> None:
    (tmp_path / "stress.c").write_text(STRESS)
    source = Path(pool.__file__).with_name("pool.c")
    rounds = f"-DROUNDS={2000 if 'sanitize' in options else 20000}"
    program = str(tmp_path / "stress")
    compiled = subprocess.run(
        [
            str(COMPILER),
            *options.split(),
            rounds,
            "stress.c",
            str(source),
            "-o",
            program,
            "-pthread",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if "sanitize" in options and compiled.returncode:
        pytest.skip(f"the compiler has no such sanitizer: {compiled.stderr[-200:]}")
    assert compiled.returncode == 0, compiled.stderr
    # ThreadSanitizer wants its addresses where they lie without randomization.
    fixed = ["setarch", "-R"]
    if "thread" not in options or not shutil.which("setarch") or subprocess.call([*fixed, "true"]):
        fixed = []
    done = subprocess.run(
        [*fixed, program], capture_output=True, text=True, timeout=300, check=False
    )
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run with this layout of memory")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "done\n"
    assert not done.stderr
