# SPDX-License-Identifier: Apache-2.0
"""Devices, arrays, modules and launches as Python sees them: what is accepted, what arrives, and what is refused."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from manyscale import InputError, KernelError, gpu

pytestmark = pytest.mark.core

# The kernel `parameters` copies its parameters to `out`, each where it lies among them.
PTX = """
.version 8.0
.target sm_80
.address_size 64

.global .align 4 .b32 counter = 7;
.const .align 8 .b64 table[4] = {1, 2, 3, 4};
.extern .func (.param .b32 written) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 format[10] = {119, 97, 114, 112, 32, 37, 100, 33, 10, 0};

.visible .entry parameters(.param .u64 out, .param .s32 whole, .param .f32 single, .param .b32 bits, .param .u8 byte,
                           .param .align 4 .b8 structure[12], .param .f64 double, .param .f16 half)
{
  .reg .b64 %out, %wide;
  .reg .b32 %word;
  .reg .b16 %short;
  ld.param.u64 %out, [out];
  ld.param.b32 %word, [whole];
  st.global.b32 [%out+8], %word;
  ld.param.b32 %word, [single];
  st.global.b32 [%out+12], %word;
  ld.param.b32 %word, [bits];
  st.global.b32 [%out+16], %word;
  ld.param.b8 %short, [byte];
  st.global.b8 [%out+20], %short;
  ld.param.b32 %word, [structure];
  st.global.b32 [%out+24], %word;
  ld.param.b32 %word, [structure+4];
  st.global.b32 [%out+28], %word;
  ld.param.b32 %word, [structure+8];
  st.global.b32 [%out+32], %word;
  ld.param.b64 %wide, [double];
  st.global.b64 [%out+40], %wide;
  ld.param.b16 %short, [half];
  st.global.b16 [%out+48], %short;
  ret;
}

.visible .entry nothing() { ret; }
.visible .entry narrow() .maxntid 64, 1, 1 { ret; }
.visible .entry exactly() .reqntid 32, 2 { ret; }

.visible .entry spin()
{
AGAIN:
  bra AGAIN;
}

.visible .entry count()
{
  .reg .b32 %old;
  atom.global.add.u32 %old, [counter], 1;
  ret;
}

.visible .entry hello()
{
  .local .align 4 .b32 values[1];
  .reg .b32 %warp;
  .reg .b64 %format, %values;
  mov.u32 %warp, %warpid;
  st.local.u32 [values], %warp;
  cvta.local.u64 %values, values;
  cvta.global.u64 %format, format;
  {
    .param .b64 first;
    .param .b64 second;
    .param .b32 written;
    st.param.b64 [first], %format;
    st.param.b64 [second], %values;
    call (written), vprintf, (first, second);
  }
  ret;
}
"""
STRUCTURE = np.dtype([("a", "f4"), ("b", "i4", (2,))])
GIVEN = {"whole": 1, "single": 2.0, "bits": 3, "byte": 4, "structure": bytes(12), "double": 5.0, "half": 6.0}
OFFSETS = {
    "whole": (8, "i4"),
    "single": (12, "f4"),
    "bits": (16, "u4"),
    "byte": (20, "u1"),
    "double": (40, "f8"),
    "half": (48, "f2"),
}


@pytest.fixture
def device() -> gpu.Device:
    return gpu.Device(echo=False)


@pytest.fixture
def module(device: gpu.Device) -> gpu.Module:
    return device.load(PTX)


def arrived(module: gpu.Module, device: gpu.Device, **given) -> bytes:
    """The parameters that the kernel got, as bytes."""
    out = device.zeros(56, np.uint8)
    module["parameters"][1, 1](out, *(GIVEN | given).values())
    return out.numpy().tobytes()


# Arguments


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("whole", -(2**31), -(2**31)),
        ("whole", 2**32 - 1, -1),  # the bits are what counts
        ("whole", np.int64(-5), -5),
        ("whole", np.uint8(200), 200),
        ("whole", True, 1),
        ("single", 0.1, np.float32(0.1)),
        ("single", 3, 3.0),
        ("single", np.float64(1.5), 1.5),
        ("single", np.int8(-1), -1.0),
        ("single", float("inf"), np.inf),
        ("bits", 2**31, 2**31),
        ("bits", -1, 2**32 - 1),
        ("bits", 1.5, 0x3FC00000),  # Triton declares floats like this
        ("bits", np.float32(-2), 0xC0000000),
        ("byte", 255, 255),
        ("byte", -1, 255),
        ("double", 0.1, 0.1),
        ("double", np.float32(0.5), 0.5),
        ("half", 0.1, np.float16(0.1)),
    ],
)
def test_numbers_arrive(module, device, name, argument, value):
    offset, dtype = OFFSETS[name]
    got = np.frombuffer(arrived(module, device, **{name: argument}), dtype, 1, offset)[0]
    assert got == np.dtype(dtype).type(value)


@pytest.mark.parametrize("form", ["bytes", "bytearray", "array", "scalar", "record"])
def test_structures_arrive(module, device, form):
    record = np.zeros(1, STRUCTURE)
    record["a"], record["b"] = 2.5, [-1, 7]
    forms = {
        "bytes": record.tobytes(),
        "bytearray": bytearray(record.tobytes()),
        "array": np.frombuffer(record.tobytes(), np.int32),
        "scalar": record.reshape(()),
        "record": record[0],
    }
    assert arrived(module, device, structure=forms[form])[24:36] == record.tobytes()


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("whole", 2**32, "argument 2 (whole): 4294967296 does not fit into s32"),
        ("whole", -(2**31) - 1, "argument 2 (whole): -2147483649 does not fit into s32"),
        ("whole", 1.0, "argument 2 (whole): it takes a whole number (s32), not 1.0"),
        ("whole", np.float32(1), "argument 2 (whole): it takes a whole number (s32), not "),
        ("whole", "1", "argument 2 (whole): '1' is not a number, nor an array on the device"),
        ("whole", None, "argument 2 (whole): None is not a number"),
        ("whole", 1j, "argument 2 (whole): "),
        (
            "whole",
            np.zeros(3, np.int32),
            "argument 2 (whole): this is an array on the host; copy it to the device",
        ),
        ("single", "2", "argument 3 (single): '2' is not a number"),
        ("single", 1j, "argument 3 (single): "),
        pytest.param("single", 10**400, "argument 3 (single): ", id="10**400"),
        ("byte", 256, "argument 5 (byte): 256 does not fit into u8"),
        ("byte", -129, "argument 5 (byte): -129 does not fit into u8"),
        ("structure", bytes(11), "argument 6 (structure): it takes 12 bytes, but 11 were given"),
        ("structure", 5, "argument 6 (structure): it takes 12 bytes, as bytes or a structured numpy value"),
        ("structure", np.zeros(2, STRUCTURE), "argument 6 (structure): it takes 12 bytes, but 24 were given"),
    ],
)
def test_arguments_that_do_not_fit(module, device, name, argument, message):
    with pytest.raises(InputError, match=re.escape(f"kernel parameters, {message}")):
        arrived(module, device, **{name: argument})


@pytest.mark.parametrize("elements", [2, 4], ids=["as-large-as-a-pointer", "larger"])
def test_an_array_of_the_host_is_no_pointer(module, elements):
    with pytest.raises(
        InputError, match=r"argument 1 \(out\): this is an array on the host; copy it to the device"
    ):
        module["parameters"][1, 1](np.zeros(elements, np.float32), *GIVEN.values())


@pytest.mark.parametrize("name", ["whole", "single", "double"])
def test_an_array_is_no_number(module, device, name):
    with pytest.raises(InputError, match=rf"\({name}\): it takes \w+, not an address"):
        arrived(module, device, **{name: device.zeros(1)})


def test_a_wrong_number_of_arguments_shows_the_right_ones(module):
    with pytest.raises(InputError) as caught:
        module["parameters"][1, 1](1, 2)
    assert str(caught.value) == (
        "kernel parameters takes 8 arguments, but 2 were given; it is declared as (out: u64, whole: s32, single: f32, "
        "bits: b32, byte: u8, structure: 12 bytes, double: f64, half: f16)"
    )
    with pytest.raises(InputError, match="kernel nothing takes 0 arguments, but 1 were given"):
        module["nothing"][1, 1](1)


def test_an_array_of_another_device_is_refused(module, device):
    other = gpu.Device()
    array = other.zeros(56, np.uint8)
    with pytest.raises(InputError, match="another device"):
        module["parameters"][1, 1](array, *GIVEN.values())


# Grids and blocks


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        (1, "launch it as kernel[grid, block](…)"),
        ((1, 1, 0, 0), "launch it as kernel[grid, block](…)"),
        ((0, 1), "at least one element in each direction, not 0"),
        ((1, (1, -1)), "at least one element in each direction, not (1, -1)"),
        (((1, 1, 1, 1), 1), "one, two or three whole numbers, not (1, 1, 1, 1)"),
        ((1.5, 1), "one, two or three whole numbers, not 1.5"),
        (("4", 1), "one, two or three whole numbers, not '4'"),
        ((1, 1025), "at most 1024 threads in all"),
        ((1, (32, 32, 2)), "at most 1024 threads in all"),
        ((1, (1, 1, 65)), "at most 1024 x 1024 x 64"),
        ((2**31, 1), "at most 2147483647 x 65535 x 65535 blocks"),
        (((1, 65536), 1), "at most 2147483647 x 65535 x 65535 blocks"),
        ((1, 1, 227 * 1024 + 1), "the block needs 232449 bytes of shared memory; at most 227 KiB"),
        ((1, 1, -1), "shared"),
    ],
)
def test_shapes_that_no_gpu_has(module, configuration, message):
    with pytest.raises(InputError, match=re.escape(message)):
        module["nothing"][configuration]()


def test_launch_bounds_of_a_kernel_hold(module):
    with pytest.raises(InputError, match=r"allows at most 64 threads in a block \(.maxntid\)"):
        module["narrow"][1, 65]()
    with pytest.raises(InputError, match=r"requires blocks of 32 x 2 x 1 threads \(.reqntid\)"):
        module["exactly"][1, 64]()
    module["narrow"][1, 64]()
    module["exactly"][1, (32, 2)]()


def test_shapes_may_be_numbers_of_numpy(module):
    assert module["nothing"][np.int64(3), (np.uint8(32), 2)]().warp_instructions == 6


# Launches


def test_a_launch_counts_instructions(module):
    done = module["nothing"][4, 40]()
    assert (done.kernel, done.warp_instructions, done.thread_instructions) == ("nothing", 8, 160)
    assert (done.printed, done.warnings) == ("", ())
    assert done.wall_seconds > 0


@pytest.mark.parametrize("echo", [True, False])
def test_what_a_kernel_prints_is_shown_if_wanted(capsys, echo):
    device = gpu.Device(echo=echo)
    done = device.load(PTX)["hello"][1, (1, 1)]()
    assert done.printed == "warp 0!\n"
    assert capsys.readouterr().out == (done.printed if echo else "")
    assert device.load(PTX)["hello"][2, 33]().printed == ("warp 0!\n" * 32 + "warp 1!\n") * 2


def test_a_kernel_that_runs_too_long_is_given_up():
    device = gpu.Device(maximum_instructions=1000)
    with pytest.raises(
        KernelError, match=r"kernel spin has executed more than the 1000 warp instructions it may"
    ):
        device.load(PTX)["spin"][1, 32]()


def test_a_kernel_that_spins_is_stopped_by_ctrl_c(tmp_path):
    program = tmp_path / "spin.py"
    program.write_text(f"""
from manyscale import gpu
PTX = {PTX!r}
device = gpu.Device(threads=2)
module = device.load(PTX)
try:
    print("ready", flush=True)
    module["spin"][8, 64]()
except KeyboardInterrupt:
    done = module["nothing"][1, 32]()
    print("stopped, and", done.warp_instructions, "instruction after it")
""")
    running = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout.readline() == "ready\n"
        time.sleep(0.5)  # so that it spins
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=20)
    finally:
        running.kill()
    assert out == "stopped, and 1 instruction after it\n"


def test_several_devices_work_at_once():
    """Each has memory of its own, and launches do not hold Python up."""
    totals = []

    def work(times: int) -> None:
        device = gpu.Device()
        module = device.load(PTX)
        for _ in range(times):
            module["count"][2, 64]()
        totals.append((times, module.variable("counter", np.int32).numpy()[0]))

    threads = [threading.Thread(target=work, args=(times,)) for times in (1, 5, 9, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(totals) == [(times, 7 + 128 * times) for times in (1, 5, 9, 13)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads must be between 1 and 1024, not 0"),
        ({"threads": 1025}, "threads must be between 1 and 1024, not 1025"),
        ({"maximum_instructions": -1}, "maximum_instructions must not be negative"),
    ],
)
def test_devices_that_cannot_be(options, message):
    with pytest.raises(InputError, match=message):
        gpu.Device(**options)


# Modules


def test_modules_and_kernels_describe_themselves(module):
    assert repr(module).startswith("<Module <ptx>: parameters, nothing, ")
    assert repr(module["parameters"]) == "<Kernel parameters(u64, s32, f32, b32, u8, 12 bytes, f64, f16)>"
    structure = module["parameters"].parameters[5]
    assert (structure.name, structure.offset, structure.size, structure.is_array) == (
        "structure",
        24,
        12,
        True,
    )


def test_a_misspelt_kernel_has_a_nearest_one(module):
    with pytest.raises(
        InputError, match=r"<ptx>: there is no kernel 'parameter'; did you mean 'parameters'\?"
    ):
        module["parameter"]


def test_variables_are_read_and_written(module):
    counter = module.variable("counter", np.int32)
    assert counter.numpy().tolist() == [7]
    module["count"][1, 3]()
    assert counter.numpy().tolist() == [10]
    counter.set([-1])
    module["count"][1, 1]()
    assert counter.numpy().tolist() == [0]
    assert module.variable("table", np.int64).numpy().tolist() == [1, 2, 3, 4]
    assert module.variable("table", np.int64, (2, 2)).numpy().tolist() == [[1, 2], [3, 4]]
    assert module.variable("table").nbytes == 32


def test_modules_have_variables_of_their_own(device, module):
    again = device.load(PTX)
    again["count"][1, 1]()
    assert module.variable("counter", np.int32).numpy().tolist() == [7]
    assert again.variable("counter", np.int32).numpy().tolist() == [8]


def test_variables_that_are_not_there(module):
    with pytest.raises(InputError, match=r"<ptx>: there is no variable 'tabel'; did you mean 'table'\?"):
        module.variable("tabel")
    with pytest.raises(InputError, match="variable 'counter' has 4 bytes, fewer than the 8 asked for"):
        module.variable("counter", np.int32, 2)


def test_a_module_is_parsed_once_for_several_devices():
    parsed = gpu.parse(PTX)
    assert parsed.target == "sm_80"
    for device in (gpu.Device(), gpu.Device()):
        module = device.load(parsed)
        module["count"][1, 1]()
        assert module.variable("counter", np.int32).numpy().tolist() == [8]
