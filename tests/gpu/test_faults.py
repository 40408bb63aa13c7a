# SPDX-License-Identifier: Apache-2.0
"""A kernel with a bug gets a diagnosis: what, where in the kernel and in its source, by whom, next to which memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from manyscale import InputError, KernelError, gpu

pytestmark = pytest.mark.core

CTA, THREAD = (2, 1, 0), (5, 3, 0)  # who does it: CTA (2, 1) of 4 x 2, thread (5, 3) of 16 x 4


def kernel(body: str, outside: str = "") -> str:
    """A kernel with a pointer %p and a number %n, in which `%guilty` holds for one thread of the grid.

    The line of the source is 7, of file `wrong.cu`, from the body on.
    """
    return f"""\
.version 8.0
.target sm_80
.address_size 64
.file 1 "wrong.cu"
{outside}
.visible .entry wrong(.param .u64 p, .param .u64 n)
{{
  .reg .pred %guilty, %condition;
  .reg .b32 %a, %b, %c, %d;
  .reg .b64 %p, %n, %q;
  .reg .f32 %f<4>;
  .shared .align 16 .b8 tile[256];
  .local .align 8 .b8 stack[32];
  ld.param.u64 %p, [p];
  ld.param.u64 %n, [n];
  mov.u32 %a, %ctaid.x;
  mov.u32 %b, %ctaid.y;
  mad.lo.u32 %a, %b, 100, %a;
  mov.u32 %b, %tid.x;
  mad.lo.u32 %a, %a, 100, %b;
  mov.u32 %b, %tid.y;
  mad.lo.u32 %a, %a, 100, %b;
  setp.eq.u32 %guilty, %a, {((CTA[1] * 100 + CTA[0]) * 100 + THREAD[0]) * 100 + THREAD[1]};
  mov.u32 %a, 1;
  .loc 1 7 3
{body}
  ret;
}}
"""


def diagnosis(
    body: str, p: Any = 0, n: int = 0, *, outside: str = "", device: gpu.Device | None = None
) -> str:
    """The message of the fault. That it says where and by whom is checked here, for all of them.

    The line of the body that is marked with `// here` is the one that must be named.
    """
    text = kernel(body, outside)
    device = device or gpu.Device()
    module = device.load(text)
    with pytest.raises(KernelError) as caught:
        module["wrong"][(4, 2), (16, 4)](p, n)
    message = str(caught.value)
    found = re.search(
        r"kernel wrong(?:, in function \w+)?, CTA (\(.*?\)), thread (\(.*?\))\n"
        r"  at <ptx>:(\d+) \(wrong.cu:(\d+)\): (\S+)$",
        message,
    )
    assert found, message
    assert (found[1], found[2]) == (str(CTA), str(THREAD))
    line = text.splitlines()[int(found[3]) - 1]
    assert line.endswith("// here"), f"{message}\nnames the line {line!r}"
    assert found[5] in line
    assert found[4] == "7"
    location = caught.value.location
    assert (location.kernel, location.cta, location.thread) == ("wrong", CTA, THREAD)
    assert (location.source, location.instruction) == (f"<ptx>:{found[3]} (wrong.cu:7)", found[5])
    return message.partition("\n")[0]


@pytest.fixture
def device() -> gpu.Device:
    return gpu.Device()


# Global memory


@pytest.mark.parametrize(
    ("instruction", "does"),
    [
        ("st.global.u32 [%p], %a;", "writes"),
        ("ld.global.u32 %a, [%p];", "reads"),
        ("atom.global.add.u32 %a, [%p], 1;", "updates"),
        ("red.global.add.u32 [%p], 1;", "updates"),
        ("st.u32 [%p], %a;", "writes"),
    ],
)
def test_behind_the_end_of_an_array(device, instruction, does):
    array = device.zeros((10, 10), np.int32)
    message = diagnosis(f"@%guilty {instruction} // here", p=array.address + 408, device=device)
    assert message == (
        f"invalid address: it {does} 4 bytes at {array.address + 408:#x}: 8 bytes past the end of "
        f"an array (10, 10) of int32 of 400 bytes at {array.address:#x}"
    )


def test_before_an_array(device):
    array = device.zeros(100, np.int32)
    message = diagnosis("@%guilty st.global.u32 [%p], %a; // here", p=array.address - 16, device=device)
    assert f"16 bytes before an array (100,) of int32 of 400 bytes at {array.address:#x}" in message


def test_the_nearest_of_several_arrays_is_named(device):
    first, second = device.zeros(100, np.int32), device.zeros(25, np.float64)
    message = diagnosis("@%guilty st.global.u32 [%p], %a; // here", p=second.address - 8, device=device)
    assert f"8 bytes before an array (25,) of float64 of 200 bytes at {second.address:#x}" in message
    message = diagnosis("@%guilty st.global.u32 [%p], %a; // here", p=first.address + 400, device=device)
    assert f"0 bytes past the end of an array (100,) of int32 of 400 bytes at {first.address:#x}" in message


def test_over_the_end_of_an_array(device):
    array = device.zeros(10, np.uint8)
    message = diagnosis("@%guilty ld.global.u64 %q, [%p]; // here", p=array.address + 8, device=device)
    assert f"it begins at byte 8 of an array (10,) of uint8 of 10 bytes at {array.address:#x}" in message
    assert message.endswith("and runs over its end")


def test_a_vector_over_the_end_of_an_array(device):
    array = device.zeros(6, np.int32)
    message = diagnosis(
        "@%guilty ld.global.v4.u32 {%a, %b, %c, %d}, [%p]; // here", p=array.address + 16, device=device
    )
    assert "it reads 16 bytes" in message
    assert message.endswith("and runs over its end")


def test_a_null_pointer():
    assert diagnosis("@%guilty ld.global.u32 %a, [%p]; // here") == (
        "invalid address: it reads 4 bytes at 0x0: a null pointer"
    )
    assert diagnosis("@%guilty st.u32 [%p+24], %a; // here").endswith("at 0x18: a null pointer")


def test_memory_that_was_freed(device):
    array = device.zeros(64, np.int16)
    array.free()
    message = diagnosis("@%guilty ld.global.u32 %a, [%p]; // here", p=array.address + 8, device=device)
    assert message.endswith(
        f"the memory was freed: an array (64,) of int16 of 128 bytes at {array.address:#x}"
    )


def test_a_pointer_of_the_host():
    host = np.zeros(4, np.int32)
    message = diagnosis("@%guilty st.global.u32 [%p], %a; // here", p=host.ctypes.data)
    assert message.endswith(
        "this looks like a pointer to the host's memory; copy the data to the device first"
    )


def test_a_pointer_to_nowhere():
    message = diagnosis("@%guilty st.global.u32 [%p], %a; // here", p=2**63)
    assert message == "invalid address: it writes 4 bytes at 0x8000000000000000: no allocation is there"


@pytest.mark.parametrize(
    ("instruction", "offset", "does", "size"),
    [
        ("ld.global.u32 %a, [%p];", 2, "reads", 4),
        ("st.global.u64 [%p], %n;", 4, "writes", 8),
        ("st.global.v4.u32 [%p], {%a, %a, %a, %a};", 8, "writes", 16),
        ("atom.global.add.u32 %a, [%p], 1;", 1, "updates", 4),
    ],
)
def test_misaligned(device, instruction, offset, does, size):
    array = device.zeros(100, np.int32)
    address = array.address + offset
    assert diagnosis(f"@%guilty {instruction} // here", p=address, device=device) == (
        f"misaligned access: it {does} {size} bytes of global memory at {address:#x}, which is not a multiple of {size}"
    )


# Other memory


def test_behind_shared_memory():
    message = diagnosis("mov.u32 %b, tile;\n@%guilty st.shared.u32 [%b+256], %a; // here")
    assert message == "out of bounds: it writes 4 bytes at 0x100 of shared memory, which has 256 bytes"


def test_misaligned_shared_memory():
    message = diagnosis("mov.u32 %b, tile;\n@%guilty ld.shared.u64 %q, [%b+4]; // here")
    assert message.startswith("misaligned access: it reads 8 bytes of shared memory at 0x")


def test_behind_local_memory():
    message = diagnosis("mov.u64 %q, 0x7ffffff0;\n@%guilty ld.local.u32 %a, [%q]; // here")
    assert re.fullmatch(
        r"out of bounds: it reads 4 bytes at 0x7ffffff0 of local memory, which has \d+ bytes", message
    )


# Calls


def test_a_stack_that_overflows():
    outside = """
.func deeper(.param .b32 depth)
{
  .local .align 8 .b8 frame[1024];
  .reg .b32 %depth;
  .reg .pred %always;
  .loc 1 7 1
  ld.param.b32 %depth, [depth];
  add.u32 %depth, %depth, 1;
  {
    .param .b32 next;
    st.param.b32 [next], %depth;
    call deeper, (next); // here
  }
  ret;
}"""
    body = "{ .param .b32 zero; st.param.b32 [zero], 0; @%guilty call deeper, (zero); // here\n}"
    message = diagnosis(body, outside=outside)
    assert message.startswith(
        "the stack overflows: calls this deep need more than the 512 KiB of local memory"
    )


def test_a_bad_pointer_to_a_function():
    message = diagnosis("SHAPE: .callprototype _ ();\n@%guilty call %p, SHAPE; // here", p=0x1234)
    assert message == "call through a pointer that is not the address of a device function"


def test_a_bad_index_of_a_branch():
    message = diagnosis("""
  TARGETS: .branchtargets ONE, TWO;
  mov.u32 %a, 0;
  @%guilty mov.u32 %a, 2;
  brx.idx %a, TARGETS; // here
ONE:
TWO:""")
    assert message == "brx.idx: index 2 is outside the table of 2 targets"


# The program gives up


def test_trap():
    assert diagnosis("@%guilty trap; // here") == "trap: the program gave up"


def test_an_assertion_names_its_condition(device):
    outside = """
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 w, .param .b64 c);
.global .align 1 .b8 condition[6] = {105, 32, 60, 32, 110, 0};
.global .align 1 .b8 source[9] = {119, 114, 111, 110, 103, 46, 99, 117, 0};
.global .align 1 .b8 inside[6] = {119, 114, 111, 110, 103, 0};"""
    body = """
  @!%guilty bra FINE;
  {
  .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 w; .param .b64 c;
  mov.u64 %q, condition;
  cvta.global.u64 %q, %q;
  st.param.b64 [m], %q;
  mov.u64 %q, source;
  cvta.global.u64 %q, %q;
  st.param.b64 [f], %q;
  st.param.b32 [l], 12;
  mov.u64 %q, inside;
  cvta.global.u64 %q, %q;
  st.param.b64 [w], %q;
  st.param.b64 [c], 1;
  call __assertfail, (m, f, l, w, c); // here
  }
FINE:"""
    with pytest.raises(
        KernelError, match=r"assertion failed: i < n\n  in wrong \(wrong.cu:12\)\n  kernel wrong, CTA"
    ):
        device.load(kernel(body, outside))["wrong"][(4, 2), (16, 4)](0, 0)
    assert diagnosis(body, outside=outside) == "assertion failed: i < n"


def test_a_free_of_what_malloc_did_not_give(device):
    outside = ".extern .func free(.param .b64 pointer);"
    body = """
  @!%guilty bra FINE;
  { .param .b64 pointer; st.param.b64 [pointer], %p;
  call free, (pointer); // here
  }
FINE:"""
    array = device.zeros(4)
    message = diagnosis(body, p=array.address + 4, outside=outside, device=device)
    assert message.startswith(
        "free of an address that malloc did not give: it begins at byte 4 of an array (4,)"
    )


# Barriers


def test_a_barrier_that_does_not_exist():
    message = diagnosis("mov.u32 %a, 16;\n@%guilty bar.sync %a; // here")
    assert message == "barrier 16 does not exist: a CTA has 16, 0 to 15"


def test_a_barrier_for_part_of_a_warp():
    message = diagnosis("mov.u32 %a, 40;\n@%guilty bar.sync 1, %a; // here")
    assert message == "a barrier for 40 threads: it must be a multiple of 32"


def deadlock(body: str) -> str:
    with pytest.raises(KernelError) as caught:
        gpu.Device().load(kernel(body))["wrong"][(4, 2), (16, 4)](0, 0)
    return str(caught.value)


def test_a_barrier_that_some_threads_never_reach():
    """The second warp waits at another barrier than the first."""
    text = deadlock("""
  mov.u32 %b, %tid.y;
  setp.lt.u32 %condition, %b, 2;
  @%condition bra ONE;
  bar.sync 2;
  bra END;
ONE:
  bar.sync 1;
END:""")
    assert text.startswith("deadlock: no warp of CTA (0, 0, 0) of kernel wrong can go on\n")
    assert re.search(r"\n  warp 0: 32 lanes wait at <ptx>:\d+ \(wrong.cu:7\) for barrier 1\n", text)
    assert re.search(r"\n  warp 1: 32 lanes wait at <ptx>:\d+ \(wrong.cu:7\) for barrier 2\n", text)
    assert "\n  barrier 1: 32 threads came, all that have not exited are expected" in text


def test_a_barrier_for_more_threads_than_there_are():
    text = deadlock("bar.sync 3, 128;")
    assert "barrier 3: 64 threads came, 128 are expected" in text


def test_lanes_of_a_warp_at_different_barriers():
    text = deadlock("""
  mov.u32 %b, %tid.x;
  setp.lt.u32 %condition, %b, 8;
  @%condition bra ONE;
  bar.sync 2;
  bra END;
ONE:
  bar.sync 1;
END:""")
    assert len(re.findall(r"warp [01]: 16 lanes wait at .* for barrier [12]", text)) == 4


# Textures


def test_a_bad_handle_of_a_texture():
    message = diagnosis(
        """
  mov.f32 %f0, 0f00000000;
  @%guilty tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%p, {%f0}]; // here""",
        p=77,
    )
    assert message == "77 is not the handle of a texture"


def test_a_texture_of_another_shape(device):
    texture = device.texture(np.zeros((4, 4), np.float32))
    message = diagnosis(
        """
  mov.f32 %f0, 0f00000000;
  @%guilty tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%p, {%f0}]; // here""",
        p=texture,
        device=device,
    )
    assert "1d" in message
    assert "texture" in message


def test_a_texture_whose_array_was_freed(device):
    array = device.zeros(16)
    texture = device.texture(array)
    array.free()
    message = diagnosis(
        """
  mov.f32 %f0, 0f00000000;
  @%guilty tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%p, {%f0}]; // here""",
        p=texture,
        device=device,
    )
    assert message == "the memory of the texture has been freed"


# Which fault is reported, and what comes after


@pytest.mark.parametrize("threads", [1, 4])
def test_of_several_faults_that_of_the_first_cta_is_reported(threads):
    device = gpu.Device(threads=threads)
    module = device.load(kernel("st.global.u32 [%p], %a;"))
    for _ in range(5):
        with pytest.raises(KernelError, match=re.escape("CTA (0, 0, 0), thread (0, 0, 0)")):
            module["wrong"][(64, 2), (16, 4)](0, 0)


def test_a_device_goes_on_after_a_fault(device):
    module = device.load(kernel("st.global.u32 [%p], %a;"))
    array = device.zeros(1, np.int32)
    with pytest.raises(KernelError):
        module["wrong"][1, 1](0, 0)
    module["wrong"][1, 1](array, 0)
    assert array.numpy().tolist() == [1]


def test_unsupported_instructions_are_reported_before_the_launch(device):
    module = device.load(kernel("  mapa.u64 %p, %p, 0;"))
    with pytest.raises(InputError, match=r"kernel wrong cannot be executed:\n  <ptx>:\d+:\d+: mapa.u64: "):
        module["wrong"][1, 1](0, 0)
