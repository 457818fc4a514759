"""Threads for kernels, in C: a few that wait for work, and how work is cut into parts for them.

Note [Parts]
    What a kernel goes over is cut into a few parts for each thread; whoever is free takes the next
    one, the calling thread too. Elements and rows are computed on their own, so results are the
    same for any number of threads; what is summed over many is cut elsewhere (`memory`), at places
    that do not depend on it. Parts are long: of memory that lies in one piece, two threads that
    take 64 KiB by turns get less than two that take a megabyte each (4 million floats: 420 to 520
    µs against 260 to 400).

Note [Workers]
    Workers are started when there is first something for them, and wait in between, a moment by
    looking again and again, then asleep. One job at a time is theirs: who comes while they are busy
    computes alone. After a fork the child has none, and starts its own. The linear algebra under
    NumPy has threads of its own, which do not run while a kernel does: both are called, one after
    the other, by the thread that runs the program.
"""

from __future__ import annotations

THREADS = """
#define MANY 50000       /* elements: from there on other threads of Python may run meanwhile */
#define SHARED 100000    /* elements: from there on several threads share the work */
#define A_PART 16384     /* elements that are worth handing to a thread, at least */
#define PARTS 4          /* for each thread: some are held up by other programs */
#define MOST_THREADS 64
typedef void (*part_of_work)(void *work, npy_intp from, npy_intp to);

static int threads = 1; /* to be used, with the calling one */

#if !defined(_WIN32)
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER; /* held by who has the workers */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* for all below */
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int workers, active, open_to_workers; /* started; in the job; whether one may still join */
static unsigned job;                         /* its number; read without the lock by who looks for one */
static struct { part_of_work part; void *work; npy_intp count, step, next; } shared;

/* Take part after part of the job until none is left. */
static void take_parts(void) {
    for (;;) {
        const npy_intp from = __atomic_fetch_add(&shared.next, shared.step, __ATOMIC_RELAXED);
        if (from >= shared.count) return;
        shared.part(shared.work, from, from + shared.step < shared.count ? from + shared.step : shared.count);
    }
}

static void *wait_for_work(void *last_seen) {
    unsigned seen = (unsigned)(uintptr_t)last_seen;
    for (;;) {
        for (int i = 0; i < 200 && __atomic_load_n(&job, __ATOMIC_RELAXED) == seen; i++) sched_yield();
        pthread_mutex_lock(&lock);
        while (job == seen) pthread_cond_wait(&wake, &lock);
        seen = job;
        const int joins = open_to_workers;
        /* one that leaves does not hold the lock */
        if (joins) __atomic_fetch_add(&active, 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&lock);
        if (!joins) continue;
        take_parts();
        __atomic_fetch_sub(&active, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Start workers that are missing; with the lock held. */
static void start_workers(void) {
    while (workers < threads - 1) {
        pthread_t worker;
        if (pthread_create(&worker, NULL, wait_for_work, (void *)(uintptr_t)job) != 0) return;
        pthread_detach(worker);
        workers++;
    }
}

static void share(part_of_work part, void *work, npy_intp count, npy_intp step) {
    if (pthread_mutex_trylock(&owner) != 0) { /* another thread of Python has them */
        part(work, 0, count);
        return;
    }
    pthread_mutex_lock(&lock);
    start_workers();
    shared.part = part;
    shared.work = work;
    shared.count = count;
    shared.step = step;
    shared.next = 0;
    open_to_workers = 1;
    __atomic_store_n(&job, job + 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
    take_parts();
    pthread_mutex_lock(&lock);
    open_to_workers = 0;
    pthread_mutex_unlock(&lock);
    while (__atomic_load_n(&active, __ATOMIC_ACQUIRE) > 0) sched_yield(); /* they are in their last part */
    pthread_mutex_unlock(&owner);
}

/* In the child of a fork: the workers are not there, and who held a lock may not be either. */
static void forget_workers(void) {
    pthread_mutex_init(&owner, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
    workers = active = open_to_workers = 0;
}

static void find_threads(void) {
    const char *asked = getenv("OMP_NUM_THREADS");
    long count = asked ? strtol(asked, NULL, 10) : 0;
#if defined(__linux__)
    cpu_set_t allowed;
    if (count < 1 && sched_getaffinity(0, sizeof(allowed), &allowed) == 0) count = CPU_COUNT(&allowed);
#endif
    if (count < 1) count = sysconf(_SC_NPROCESSORS_ONLN);
    threads = count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : (int)count;
    pthread_atfork(NULL, NULL, forget_workers);
}
#else
static void share(part_of_work part, void *work, npy_intp count, npy_intp step) { part(work, 0, count); }
static void find_threads(void) {}
#endif

/* Run `part` over 0...count, cut only at multiples of `least`; it goes over `size` elements. */
static void run_parts(part_of_work part, void *work, npy_intp count, npy_intp least, npy_intp size) {
    if (size <= MANY) {
        part(work, 0, count);
        return;
    }
    PyThreadState *saved = PyEval_SaveThread();
    if (threads == 1 || size < SHARED || count <= least) part(work, 0, count);
    else {
        const npy_intp worth = size / A_PART, most = PARTS * threads;
        npy_intp step = count / (worth < most ? worth : most);
        step = (step + least - 1) / least * least;
        share(part, work, count, step > 0 ? step : least);
    }
    PyEval_RestoreThread(saved);
}

/* use_threads(count): how many threads kernels use from now on; how many it were */
static PyObject *use_threads(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    const long wanted = count == 1 ? PyLong_AsLong(args[0]) : -1, before = threads;
    if (wanted < 1) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "use_threads(1...)");
        return NULL;
    }
    threads = wanted > MOST_THREADS ? MOST_THREADS : (int)wanted;
    return PyLong_FromLong(before);
}
"""

METHODS = """
    {"use_threads", (PyCFunction)(void (*)(void))use_threads, METH_FASTCALL,
     "use_threads(count): how many threads kernels use from now on; how many it were."},
"""
