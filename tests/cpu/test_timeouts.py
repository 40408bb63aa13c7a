# SPDX-License-Identifier: Apache-2.0
"""System calls that wait until some time: at once, long, longer than simulated time lasts, and wrong times."""

import errno
import struct
import time

import pytest
from riscv import encoding as e
from riscv.code import call, constant
from riscv.elf import DATA, small_program

from manyscale import cpu
from manyscale.errors import DeadlockError, ProgramError

pytestmark = pytest.mark.core

END = 9223  # whole seconds of simulated time
TIME = DATA  # a timespec
ZEROS = DATA + 64  # a futex whose value is 0, an empty set of signals, no file
OLD = DATA + 128
EXIT = 93
REALTIME_BEGIN = 1_735_689_600

# name: the call, and the error number that it gives back when the time is over
CALLS = {
    "nanosleep": ((101, TIME, 0), 0),
    "clock_nanosleep": ((115, 1, 0, TIME, 0), 0),
    "clock_nanosleep, absolute": ((115, 1, 1, TIME, 0), 0),
    "futex": ((98, ZEROS, 0, 0, TIME), errno.ETIMEDOUT),
    "futex, absolute": ((98, ZEROS, 9, 0, TIME, 0, -1), errno.ETIMEDOUT),
    "ppoll": ((73, ZEROS, 0, TIME, 0), 0),
    "rt_sigtimedwait": ((137, ZEROS, 0, TIME, 8), errno.EAGAIN),
}


def waiting(folder, code, seconds, nanoseconds=0):
    """A program that makes a call with a time and exits with the error number that comes back."""
    ends = [e.register("sub", 10, 0, 10), *constant(17, EXIT), e.ecall()]
    data = struct.pack("<qq", seconds, nanoseconds) + bytes(240)
    return cpu.Program(small_program(folder, [*call(*code), *ends], data))


def functional(program):
    return cpu.run_functional(program, limit=100_000)


def timed(program):
    return cpu.run(program, machine="broadwell", cores=1)


both = pytest.mark.parametrize("run", [functional, timed])
each = pytest.mark.parametrize("name", CALLS)


@both
@each
def test_a_time_within_the_range_is_skipped(name, run, tmp_path):
    """All but a second of what can be simulated takes no time of the host."""
    code, result = CALLS[name]
    began = time.monotonic()
    found = run(waiting(tmp_path, code, END - 1, 999_999_999))
    assert found.exit_code == result
    assert time.monotonic() - began < 5
    if run is timed:
        assert END - 0.1 < found.simulated_seconds < END + 0.1


@both
@each
@pytest.mark.parametrize("seconds", [END + 1, 2**31, 2**62, 2**63 - 1])
def test_a_time_beyond_the_range_ends_the_program_with_that(name, seconds, run, tmp_path):
    """A thread that sleeps is no deadlock."""
    with pytest.raises(ProgramError, match=r"after the end of simulated time \(9223 s"):
        run(waiting(tmp_path, CALLS[name][0], seconds))


@both
@each
def test_no_time_is_over_at_once(name, run, tmp_path):
    code, result = CALLS[name]
    found = run(waiting(tmp_path, code, 0))
    assert found.exit_code == result
    if run is timed:
        assert found.simulated_seconds < 1e-3


@both
@each
@pytest.mark.parametrize(("seconds", "nanoseconds"), [(-1, 0), (-(2**63), 0), (1, -1), (1, 10**9)])
def test_no_valid_time_is_an_error_to_the_program(name, seconds, nanoseconds, run, tmp_path):
    """As on Linux: EINVAL, and the program goes on."""
    assert run(waiting(tmp_path, CALLS[name][0], seconds, nanoseconds)).exit_code == errno.EINVAL


@both
def test_a_moment_of_the_day(run, tmp_path):
    """CLOCK_REALTIME does not begin at 0: a moment long before the run has passed, one beyond the range never comes."""
    code = (115, 0, 1, TIME, 0)
    assert run(waiting(tmp_path, code, REALTIME_BEGIN - 5)).exit_code == 0
    assert run(waiting(tmp_path, code, REALTIME_BEGIN + 5)).exit_code == 0
    with pytest.raises(ProgramError, match="end of simulated time"):
        run(waiting(tmp_path, code, REALTIME_BEGIN + 2**31))


@both
def test_a_wait_without_a_time_is_a_deadlock(run, tmp_path):
    """Without a time there is nothing to wait for: the two are told apart."""
    with pytest.raises((DeadlockError, ProgramError), match="waits for a futex") as error:
        run(waiting(tmp_path, (98, ZEROS, 0, 0, 0), 0))
    assert "end of simulated time" not in str(error.value)


def alarmed(folder, seconds, then):
    """A program that sets an alarm (setitimer) and makes another call."""
    ends = [*constant(10, 7), *constant(17, EXIT), e.ecall()]
    data = struct.pack("<qqqq", 0, 0, seconds, 0) + bytes(240)
    return cpu.Program(small_program(folder, [*call(103, 0, TIME, 0), *then, *ends], data))


@both
@pytest.mark.parametrize("seconds", [5, 9000, 2**31, 2**62])
def test_an_alarm_that_is_not_waited_for_costs_nothing(seconds, run, tmp_path):
    """The program ends before: the time it took is its own."""
    found = run(alarmed(tmp_path, seconds, []))
    assert found.exit_code == 7
    if run is timed:
        assert found.simulated_seconds < 1e-3
        unset = run(alarmed(tmp_path, 0, []))
        assert abs(found.cycles - unset.cycles) <= 2
        assert found.shares == unset.shares


@both
def test_an_alarm_beyond_the_range_ends_a_program_that_waits_for_it(run, tmp_path):
    forever = call(98, OLD, 0, 0, 0)
    with pytest.raises(ProgramError, match="an alarm until after the end of simulated time"):
        run(alarmed(tmp_path, 2**31, forever))
