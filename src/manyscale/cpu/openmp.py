# SPDX-License-Identifier: Apache-2.0
"""Which functions of a program begin and end OpenMP constructs, or make threads and let them wait for each other.

The former are the entry points of libgomp, GCC's OpenMP library, the latter those of the C library.

A program does not have to be recompiled: a statically linked one has libgomp's functions in its table of symbols, and
the core watches their addresses. What each construct's functions take and give is known to the core
(`core/cpu/openmp/marker_watch.hpp`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# Names of libgomp's functions, and the construct each belongs to (the names of Construct in the core). Functions
# with GOMP_ are called by code that GCC makes and keep their names and arguments from version to version; the few
# with gomp_ are libgomp's own.
_ENTRY_POINTS = {
    r"GOMP_parallel(_reductions)?": "parallel",
    r"GOMP_parallel_loop_(static|(maybe_)?(nonmonotonic_)?(dynamic|guided|runtime))": "parallel_loop",
    r"GOMP_parallel_sections": "parallel_sections",
    r"gomp_team_barrier_wait_final": "team_end",
    r"GOMP_loop(_ull)?(_[a-z_]+)?_start": "loop_start",
    r"GOMP_loop(_ull)?_ordered_[a-z]+_next": "loop_next",
    r"GOMP_loop_end(_cancel)?": "loop_end",
    r"GOMP_loop_end_nowait": "loop_end_nowait",
    r"GOMP_barrier(_cancel)?": "barrier",
    r"GOMP_(critical|atomic)_start": "critical_start",
    r"GOMP_(critical|atomic)_end": "critical_end",
    r"GOMP_critical_name_start": "named_critical_start",
    r"GOMP_critical_name_end": "named_critical_end",
    r"GOMP_single_start": "single_start",
    r"GOMP_single_copy_start": "single_copy_start",
    r"GOMP_single_copy_end": "single_copy_end",
    r"GOMP_sections2?_start": "sections_start",
    r"GOMP_sections_end(_cancel)?": "sections_end",
    r"GOMP_sections_end_nowait": "sections_end_nowait",
    r"GOMP_ordered_start": "ordered_start",
    r"GOMP_ordered_end": "ordered_end",
    r"GOMP_task": "task",
    r"GOMP_taskloop(_ull)?": "taskloop",
    r"gomp_malloc": "task_memory",
    r"GOMP_taskwait(_depend)?": "taskwait",
    r"GOMP_taskgroup_start": "taskgroup_start",
    r"GOMP_taskgroup_end": "taskgroup_end",
    r"omp_set(_nest)?_lock": "lock",
    r"omp_unset(_nest)?_lock": "unlock",
    r"omp_test(_nest)?_lock": "test_lock",
    r"omp_get_num_threads": "team_size",
    r"omp_get_thread_num": "thread_number",
}
# Functions of the C library for threads that a program makes itself; C++ and C11 threads call them, too. Readers of a
# lock for readers and writers do not keep each other out, so only its writers are watched.
_THREAD_CALLS = {
    r"pthread_create": "thread_create",
    r"pthread_(timed|clock)?join(_np)?": "thread_join",
    r"pthread_spin_lock": "lock",
    r"pthread_spin_unlock": "unlock",
    r"pthread_mutex_lock": "mutex_lock",
    r"pthread_mutex_unlock": "mutex_unlock",
    r"pthread_mutex_(try|timed|clock)lock": "try_lock",
    r"pthread_spin_trylock": "try_lock",
    r"pthread_rwlock_wrlock": "mutex_lock",
    r"pthread_rwlock_(trywr|timedwr|clockwr)lock": "try_lock",
    r"pthread_rwlock_unlock": "mutex_unlock",
    r"pthread_cond_(timed|clock)?wait": "condition_wait",
    r"pthread_cond_(signal|broadcast)": "condition_signal",
    r"pthread_barrier_wait": "thread_barrier",
    r"sem_(timed|clock|try)?wait": "semaphore_wait",
    r"sem_post": "semaphore_post",
}
_CONSTRUCTS = [
    (re.compile(pattern), construct) for pattern, construct in (_ENTRY_POINTS | _THREAD_CALLS).items()
]


def construct_of(function: str) -> str | None:
    """The construct that a function of libgomp or of the C library belongs to; None for other functions.

    >>> construct_of("GOMP_loop_nonmonotonic_dynamic_start")
    'loop_start'
    >>> construct_of("GOMP_loop_dynamic_next") is None
    True
    """
    return next((construct for pattern, construct in _CONSTRUCTS if pattern.fullmatch(function)), None)


def watch_points(functions: Mapping[str, int], watched: Iterable[str] = ()) -> list[tuple[int, str]]:
    """The addresses to watch in a program, each with its construct, in the order of addresses.

    `functions` are the program's functions by name; those named in `watched` become regions of their own. A function
    that a program does not have is left out, so what is given for `watched` should be checked before.
    """
    points: dict[int, str] = {}
    for name, address in functions.items():
        construct = construct_of(name)
        if construct is not None:
            points[address] = construct
    if "task" not in points.values() and "taskloop" not in points.values():
        points = {address: construct for address, construct in points.items() if construct != "task_memory"}
    for name in watched:
        if name in functions:
            points.setdefault(functions[name], "function")
    return sorted(points.items())


# Titles of regions that the program gives no name; the location is filled in.
_TITLES = {
    "parallel": "parallel {}",
    "loop": "loop at {}",
    "barrier": "barrier at {}",
    "critical": "critical at {}",
    "critical_wait": "wait for critical at {}",
    "single": "single at {}",
    "sections": "sections at {}",
    "ordered": "ordered at {}",
    "ordered_wait": "wait for ordered at {}",
    "task": "task {}",
    "task_create": "create task at {}",
    "taskwait": "wait for tasks at {}",
    "taskgroup": "taskgroup at {}",
    "lock": "wait for lock at {}",
    "thread": "thread {}",
    "wait": "wait for a thread at {}",
    "user": "{}",
}


def region_title(kind: str, name: str, location: str) -> str:
    """The title of a region in tables: its own name, or its kind and location (symbol, or file and line).

    >>> region_title("parallel", "", "solve.c:12")
    'parallel solve.c:12'
    >>> region_title("mpi", "MPI_Send", "")
    'MPI_Send'
    """
    return name or _TITLES.get(kind, kind + " {}").format(location)
