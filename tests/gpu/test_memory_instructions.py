# SPDX-License-Identifier: Apache-2.0
"""Loads, stores and addresses in all state spaces, against the reference interpreter and against plain bytes."""

import numpy as np
import pytest
from instruction_support import agree
from reference import HEADER
from reference.memory_programs import SLOT, THREADS, frame, space_of
from reference.ptx_types import TYPES, mask, widened

import manyscale
from manyscale import gpu

pytestmark = pytest.mark.core

LOADED = (*(f"{kind}{size}" for size in (8, 16, 32, 64) for kind in "bus"), "f32", "f64")
SPACES = ("global", "shared", "local", "generic shared", "generic local", "generic global")


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(3).integers(0, 256, THREADS * SLOT, np.uint8)


def registers_for(type_: str) -> list[str]:
    """Registers that can hold a value of the type: as wide or wider; floats only in their own or in bits."""
    width = TYPES[type_].width
    names = [f"b{size}" for size in (16, 32, 64) if size >= width]
    return [type_, *names] if type_[0] == "f" else names


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("type_", LOADED)
def test_load_widens_to_the_register(device, data, type_, space):
    """Sign-extended if the type is signed, else zero-extended; compared with the bytes themselves."""
    size = TYPES[type_].size
    registers = registers_for(type_)
    declarations = "\n    ".join(f".reg .{each} %x{i};" for i, each in enumerate(registers))
    body = "\n    ".join(
        f"ld{space_of(space)}.{type_} %x{i}, [%own+{size}];\n    st.global.{each} [%out+{8 * i}], %x{i};"
        for i, each in enumerate(registers)
    )
    output = device.zeros(THREADS * 256, np.uint8)
    device.load(frame(body, space, declarations))["kernel"][1, THREADS](device.array(data), output)
    result = output.numpy().reshape(THREADS, 32, 8)
    for thread in range(THREADS):
        bits = int.from_bytes(data[thread * SLOT + size :][:size].tobytes(), "little")
        for i, register in enumerate(registers):
            width = int(register[1:])
            expected = widened(bits, TYPES[type_], width)
            assert int.from_bytes(result[thread, i].tobytes(), "little") == expected, f"{type_} in {register}"


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("type_", LOADED)
def test_store_takes_the_low_bits_of_the_register(device, data, type_, space):
    """Bytes beside those stored stay as they were."""
    size = TYPES[type_].size
    lines = []
    for i, register in enumerate(registers_for(type_)):
        width = int(register[1:])
        bits = 0xF1E2D3C4B5A69788 & mask(width)
        if register[0] == "f":
            lines.append(
                f".reg .{register} %x{i};\n    mov.{register} %x{i}, 0{'fd'[width == 64]}{bits:0{width // 4}X};"
            )
        else:
            lines.append(f".reg .{register} %x{i};\n    mov.{register} %x{i}, {bits:#x};")
        lines.append(f"st{space_of(space)}.{type_} [%own+{size * (i % (SLOT // size - 1) + 1)}], %x{i};")
    lines += [
        f"ld{space_of(space)}.b64 %copy, [%own+{offset}];\n    st.global.b64 [%out+{offset}], %copy;"
        for offset in range(0, SLOT, 8)
    ]
    text = frame("\n    ".join(lines), space)
    agree(device, text, "kernel", 1, THREADS, data, np.zeros(THREADS * 256, np.uint8))


VECTORS = [(type_, count) for type_ in LOADED for count in (2, 4) if TYPES[type_].size * count <= 16]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(("type_", "count"), VECTORS)
def test_vectors(device, data, type_, count, space):
    """A vector is loaded from the second slot, reversed, and stored in the first one."""
    size = TYPES[type_].size * count
    register = type_ if type_[0] == "f" else f"b{max(16, TYPES[type_].width)}"
    names = [f"%v{i}" for i in range(count)]
    body = f"""
    ld{space_of(space)}.v{count}.{type_} {{{", ".join(names)}}}, [%own+{size}];
    st{space_of(space)}.v{count}.{type_} [%own], {{{", ".join(reversed(names))}}};
    ld{space_of(space)}.b64 %copy, [%own];
    st.global.b64 [%out], %copy;
    ld{space_of(space)}.b64 %copy, [%own+8];
    st.global.b64 [%out+8], %copy;"""
    text = frame(body, space, f".reg .{register} %v<{count}>;")
    agree(device, text, "kernel", 1, THREADS, data, np.zeros(THREADS * 256, np.uint8))


LOADS = [
    *(
        f"ld.{order}.global.u32"
        for order in ("weak", "volatile", "relaxed.gpu", "acquire.sys", "relaxed.cta")
    ),
    *(
        f"ld.global.{cache}.u32"
        for cache in ("nc", "ca", "cg", "cs", "lu", "cv", "acquire.gpu", "L1::evict_last")
    ),
    *("ld.global.nc.L1::no_allocate.u32", "ld.global.L2::128B.b32", "ldu.global.u32", "ld.global.nc.u64"),
    *("ld.volatile.shared.u32", "ld.volatile.shared.f64", "ld.relaxed.cta.shared.b32", "ld.shared::cta.b32"),
    *("ld.acquire.gpu.u32", "ld.relaxed.cta.b32", "ld.volatile.f64"),
]
STORES = [
    *(f"st.{order}.global.u32" for order in ("weak", "volatile", "relaxed.gpu", "release.sys")),
    *(f"st.global.{cache}.u32" for cache in ("wb", "cg", "cs", "wt", "release.gpu", "L1::no_allocate")),
    *("st.volatile.shared.u32", "st.volatile.shared.u64", "st.volatile.shared.f64", "st.shared::cta.b32"),
    *("st.relaxed.cta.shared.b32", "st.relaxed.cta.b32", "st.release.gpu.u64"),
]


def access_space(opcode: str) -> str:
    return next((space for space in ("global", "shared") if space in opcode), "generic global")


@pytest.mark.parametrize("opcode", LOADS)
def test_modifiers_of_loads_do_not_change_values(device, data, opcode):
    kind = f"b{opcode[-2:]}" if opcode[-3] != "f" else f"f{opcode[-2:]}"
    body = f"{opcode} %x, [%own+8];\n    st.global.{kind} [%out], %x;"
    text = frame(body, access_space(opcode), f".reg .{kind} %x;")
    agree(device, text, "kernel", 1, THREADS, data, np.zeros(THREADS * 256, np.uint8))


@pytest.mark.parametrize("opcode", STORES)
def test_modifiers_of_stores_do_not_change_values(device, data, opcode):
    kind = f"b{opcode[-2:]}" if opcode[-3] != "f" else f"f{opcode[-2:]}"
    space = access_space(opcode)
    plain = space_of(space)
    body = f"""
    ld{plain}.{kind} %x, [%own+8];
    {opcode} [%own+16], %x;
    ld{plain}.b64 %copy, [%own+16];
    st.global.b64 [%out], %copy;"""
    text = frame(body, space, f".reg .{kind} %x;")
    agree(device, text, "kernel", 1, THREADS, data, np.zeros(THREADS * 256, np.uint8))


def test_fences_and_sleep_change_nothing(device, data):
    fences = (
        "membar.cta",
        "membar.gl",
        "membar.sys",
        "fence.sc.cta",
        "fence.acq_rel.gpu",
        "fence.proxy.async",
    )
    body = (
        "".join(f"{name};\n    " for name in fences) + "nanosleep.u32 20;\n    ld.global.b64 %copy, [%own];"
    )
    text = frame(f"{body}\n    st.global.b64 [%out], %copy;", "global")
    agree(device, text, "kernel", 1, THREADS, data, np.zeros(THREADS * 256, np.uint8))


def test_forms_of_addresses(device, data):
    """Registers of 32 and 64 bits, symbols, offsets of both signs."""
    body = """
    ld.global.u8 %x, [%own+3];
    st.global.u32 [%out], %x;
    add.s64 %own, %own, 8;
    ld.global.u16 %x, [%own+-6];
    st.global.u32 [%out+4], %x;
    ld.global.u16 %x, [%own+-4];
    st.global.u32 [%out+8], %x;
    mov.u32 %near, shared_slots;
    shl.b32 %x, %thread, 5;
    add.u32 %near, %near, %x;
    st.shared.u32 [%near+4], %x;
    ld.shared.u32 %x, [%near+4];
    st.global.u32 [%out+12], %x;
    st.local.u32 [local_slots+8], %x;
    ld.local.u32 %x, [local_slots+8];
    st.global.u32 [%out+16], %x;
    mov.u32 %near, local_slots;
    ld.local.u32 %x, [%near+8];
    st.global.u32 [%out+20], %x;
    mov.u32 %near, shared_slots+64;
    bar.sync 0;
    ld.shared.u32 %x, [%near+4];
    st.global.u32 [%out+24], %x;
    ld.shared.u32 %x, [shared_slots+36];
    st.global.u32 [%out+28], %x;"""
    text = frame(body, "global", ".reg .b32 %x, %near;")
    agree(device, text, "kernel", 1, THREADS, data, np.zeros(THREADS * 256, np.uint8))


def test_generic_addresses_know_their_space(device):
    """cvta there and back, and isspacep for pointers into each space."""
    lines = []
    for row, (space, symbol) in enumerate((("global", "table"), ("shared", "tile"), ("local", "own"))):
        lines.append(f"mov.u64 %plain, {symbol};\n    cvta.{space}.u64 %pointer, %plain;")
        for column, other in enumerate(("global", "shared", "local")):
            lines.append(f"isspacep.{other} %p, %pointer;\n    selp.b32 %x, 1, 0, %p;")
            lines.append(f"st.global.b32 [%out+{16 * row + 4 * column}], %x;")
        lines.append(f"cvta.to.{space}.u64 %back, %pointer;\n    setp.eq.u64 %p, %back, %plain;")
        lines.append(f"selp.b32 %x, 1, 0, %p;\n    st.global.b32 [%out+{16 * row + 12}], %x;")
    text = f"""{HEADER}
.global .align 4 .b8 table[16];
.visible .entry kernel(.param .u64 output)
{{
    .reg .b32 %x;
    .reg .b64 %plain, %pointer, %back, %out;
    .reg .pred %p;
    .shared .align 4 .b8 tile[16];
    .local .align 4 .b8 own[16];
    ld.param.u64 %out, [output];
    {"    ".join(lines)}
    ret;
}}"""
    output = device.zeros(12, np.uint32)
    device.load(text)["kernel"][1, 1](output)
    assert output.numpy().reshape(3, 4).tolist() == [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]]


def test_initial_values_of_variables(device):
    """Numbers of all types, arrays with fewer values than elements, addresses of other variables."""
    variables = {
        "a": (
            ".global .align 4 .u32 a[4] = {1, 0x80000000, -3};",
            np.array([1, 2**31, 2**32 - 3, 0], np.uint32),
        ),
        "b": (".const .align 8 .f64 b[2] = {0d3FF8000000000000, 2.5};", np.array([1.5, 2.5])),
        "c": (
            ".global .align 4 .f32 c[3] = {0f40490FDB, 1.0, -2.5e-3};",
            np.array([0x40490FDB, 0, 0], np.uint32),
        ),
        "d": (".const .align 2 .b8 d[5] = {1, 255, 3, 0x7f, 9};", np.array([1, 255, 3, 127, 9], np.uint8)),
        "e": (".global .align 8 .s64 e = -5;", np.array([-5], np.int64)),
        "f": (".global .align 2 .u16 f[2][3] = {{1, 2, 3}, {4, 5, 6}};", np.arange(1, 7, dtype=np.uint16)),
    }
    variables["c"][1].view(np.float32)[1:] = (1.0, -2.5e-3)
    copies, offset = [], 0
    for name, (declaration, values) in variables.items():
        space = declaration[1:].split()[0]
        for byte in range(values.nbytes):
            copies.append(f"ld.{space}.u8 %x, [{name}+{byte}];\n    st.global.u8 [%out+{offset}], %x;")
            offset += 1
    text = f"""{HEADER}
{chr(10).join(declaration for declaration, _values in variables.values())}
.global .align 8 .u64 pointer = generic(a) + 8;
.visible .entry kernel(.param .u64 output)
{{
    .reg .b32 %x;
    .reg .b64 %out, %pointer;
    ld.param.u64 %out, [output];
    {"    ".join(copies)}
    ld.global.u64 %pointer, [pointer];
    ld.u32 %x, [%pointer];
    st.global.u32 [%out+{-(-offset // 4) * 4}], %x;
    ret;
}}"""
    output = device.zeros(-(-offset // 4) * 4 + 4, np.uint8)
    device.load(text)["kernel"][1, 1](output)
    expected = b"".join(values.tobytes() for _declaration, values in variables.values())
    assert output.numpy()[:offset].tobytes() == expected
    assert output.numpy()[-4:].view(np.uint32)[0] == 2**32 - 3


def test_variables_keep_their_values_between_launches(device):
    text = f"""{HEADER}
.global .u32 count = 7;
.visible .entry kernel(.param .u64 output)
{{
    .reg .b32 %x;
    .reg .b64 %out;
    ld.param.u64 %out, [output];
    ld.global.u32 %x, [count];
    add.u32 %x, %x, 1;
    st.global.u32 [count], %x;
    st.global.u32 [%out], %x;
    ret;
}}"""
    module, output = device.load(text), device.zeros(1, np.uint32)
    for expected in (8, 9, 10):
        module["kernel"][1, 1](output)
        assert output.numpy()[0] == expected


def test_dynamic_shared_memory_follows_the_static(device):
    text = f"""{HEADER}
.extern .shared .align 16 .b8 dynamic[];
.visible .entry kernel(.param .u64 output)
{{
    .reg .b32 %thread, %x, %own, %size;
    .reg .b64 %out;
    .shared .align 4 .b8 fixed[{4 * THREADS}];
    mov.u32 %thread, %tid.x;
    ld.param.u64 %out, [output];
    mad.wide.u32 %out, %thread, 8, %out;
    shl.b32 %x, %thread, 2;
    mov.u32 %own, fixed;
    add.u32 %own, %own, %x;
    st.shared.u32 [%own], %thread;
    mov.u32 %own, dynamic;
    add.u32 %own, %own, %x;
    mul.lo.u32 %x, %thread, 1000;
    st.shared.u32 [%own], %x;
    bar.sync 0;
    sub.u32 %x, {THREADS - 1}, %thread;
    shl.b32 %x, %x, 2;
    mov.u32 %own, fixed;
    add.u32 %own, %own, %x;
    ld.shared.u32 %own, [%own];
    st.global.u32 [%out], %own;
    mov.u32 %own, dynamic;
    add.u32 %own, %own, %x;
    ld.shared.u32 %own, [%own];
    st.global.u32 [%out+4], %own;
    ret;
}}"""
    output = device.zeros(2 * THREADS, np.uint32)
    device.load(text)["kernel"][1, THREADS, 4 * THREADS](output)
    reverse = np.arange(THREADS)[::-1]
    assert (output.numpy().reshape(-1, 2) == np.stack([reverse, 1000 * reverse], axis=1)).all()


def test_parameters_of_all_types(device):
    """Each is read back with its own type, and two at once as a vector."""
    text = f"""{HEADER}
.visible .entry kernel(.param .u64 output, .param .s8 a, .param .u16 b, .param .f32 c, .param .u32 d, .param .f64 e,
    .param .s64 f)
{{
    .reg .b32 %x;
    .reg .b64 %out, %y;
    .reg .f32 %c;
    .reg .f64 %e;
    ld.param.u64 %out, [output];
    ld.param.s8 %y, [a];
    st.global.b64 [%out], %y;
    ld.param.u16 %y, [b];
    st.global.b64 [%out+8], %y;
    ld.param.f32 %c, [c];
    st.global.f32 [%out+16], %c;
    ld.param.u32 %x, [d];
    st.global.b32 [%out+20], %x;
    ld.param.f64 %e, [e];
    st.global.f64 [%out+24], %e;
    ld.param.u64 %y, [f];
    st.global.b64 [%out+32], %y;
    ret;
}}"""
    agree(device, text, "kernel", 1, 1, np.zeros(40, np.uint8), -5, 65535, 1.5, 4000000000, -2.25, -(2**40))


@pytest.mark.parametrize("space", ["const", "param", "generic const"])
def test_loads_of_constants_and_of_structures_as_parameters(device, space):
    """All types, and vectors of them, from constant memory and from a parameter of 32 bytes."""
    given = bytes(range(0xB0, 0xD0))
    name = "given" if space == "param" else "table"
    lines, expected = [], []
    if space == "generic const":
        lines.append("mov.u64 %pointer, table;\n    cvta.const.u64 %pointer, %pointer;")
        name = "%pointer"
    for type_ in LOADED:
        size = TYPES[type_].size
        for count in (1, 2, 4):
            if size * count > 16:
                continue
            offset = 16 if size * count == 16 else 2 * size * count % 32
            names = [f"%{register_for(type_)}_{i}" for i in range(count)]
            operand, vector = (names[0], "") if count == 1 else (f"{{{', '.join(names)}}}", f".v{count}")
            lines.append(f"ld{space_of(space)}{vector}.{type_} {operand}, [{name}+{offset}];")
            for i, each in enumerate(names):
                lines.append(f"st.global.{register_for(type_)} [%out+{8 * len(expected)}], {each};")
                part = given[offset + size * i : offset + size * (i + 1)]
                width = int(register_for(type_)[1:])
                expected.append(widened(int.from_bytes(part, "little"), TYPES[type_], width))
    registers = "\n    ".join(f".reg .{each} %{each}_<4>;" for each in ("b16", "b32", "b64", "f32", "f64"))
    text = f"""{HEADER}
.const .align 16 .b8 table[32] = {{{", ".join(str(byte) for byte in given)}}};
.visible .entry kernel(.param .u64 output, .param .align 16 .b8 given[32])
{{
    .reg .b64 %out, %pointer;
    {registers}
    ld.param.u64 %out, [output];
    {"    ".join(lines)}
    ret;
}}"""
    output = device.zeros(len(expected), np.uint64)
    device.load(text)["kernel"][1, 1](output, given)
    assert output.numpy().tolist() == expected


def register_for(type_: str) -> str:
    """A register for what is loaded; eight bits are held in 32."""
    width = TYPES[type_].width
    return type_ if type_[0] == "f" else f"b{32 if width == 8 else width}"


def test_addresses_of_parameters(device):
    """A parameter read through its address, which each thread reckons for itself, and through a generic one."""
    text = f"""{HEADER}
.visible .entry kernel(.param .u64 output, .param .align 16 .b8 given[32])
{{
    .reg .b32 %thread, %x;
    .reg .b64 %out, %own;
    mov.u32 %thread, %tid.x;
    ld.param.u64 %out, [output];
    mad.wide.u32 %out, %thread, 8, %out;
    mov.b64 %own, given;
    mad.wide.u32 %own, %thread, 4, %own;
    ld.param.u32 %x, [%own];
    st.global.u32 [%out], %x;
    cvta.param.u64 %own, %own;
    ld.u8 %x, [%own+1];
    st.global.u32 [%out+4], %x;
    ret;
}}"""
    agree(device, text, "kernel", 1, 8, np.zeros(16, np.uint32), bytes(range(100, 132)))


def test_local_memory_by_an_index_of_each_thread(device, data):
    """Threads write and read different elements of their own arrays at once."""
    body = """
    and.b32 %x, %thread, 7;
    mad.wide.u32 %copy, %x, 4, %own;
    st.local.u32 [%copy], %thread;
    add.u32 %x, %x, 3;
    and.b32 %x, %x, 7;
    mad.wide.u32 %copy, %x, 4, %own;
    ld.local.u32 %y, [%copy];
    st.global.u32 [%out], %y;
    ld.local.v4.u32 {%a, %b, %c, %d}, [%own+16];
    st.global.v4.u32 [%out+16], {%a, %b, %c, %d};"""
    text = frame(body, "local", ".reg .b32 %x, %y, %a, %b, %c, %d;")
    agree(device, text, "kernel", 1, THREADS, data, np.zeros(THREADS * 256, np.uint8))


@pytest.mark.parametrize(
    "opcode", ["ld.global.u32 %x, [%far];", "st.global.u32 [%far], %x;", "ld.u32 %x, [%far];"]
)
def test_threads_that_are_kept_out_access_nothing(device, data, opcode):
    """Their addresses are bad, under a guard and on the other side of a branch."""
    body = f"""
    and.b32 %x, %thread, 1;
    setp.eq.u32 %p, %x, 1;
    mov.u64 %far, 3;
    @%p mov.u64 %far, %own;
    @%p {opcode}
    @!%p bra OVER;
    {opcode}
OVER:
    st.global.u32 [%out], %x;"""
    text = frame(body, "global", ".reg .b32 %x;\n    .reg .b64 %far;\n    .reg .pred %p;")
    agree(device, text, "kernel", 1, THREADS, data, np.zeros(THREADS * 256, np.uint8))


PACKS = [
    ("b32", "b16", 2),
    ("b64", "b32", 2),
    ("b64", "b16", 4),
    ("b128", "b64", 2),
    ("b128", "b32", 4),
]


@pytest.mark.parametrize(("whole", "part", "count"), PACKS)
def test_mov_packs_and_unpacks(device, data, whole, part, count):
    names = [f"%v{i}" for i in range(count)]
    body = f"""
    ld.global.{whole} %x, [%own];
    mov.{whole} {{{", ".join(names)}}}, %x;
    mov.{whole} %y, {{{", ".join(reversed(names))}}};
    st.global.{whole} [%out], %y;
    mov.{whole} {{_, {", ".join(names[1:])}}}, %y;
    mov.{whole} %y, {{{", ".join(names)}}};
    st.global.{whole} [%out+16], %y;"""
    text = frame(body, "global", f".reg .{whole} %x, %y;\n    .reg .{part} %v<{count}>;")
    agree(device, text, "kernel", 1, THREADS, data, np.zeros(THREADS * 256, np.uint8))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("ld.global.u32 %x, [%out+1073741824];", "beyond what is allocated"),
        ("st.global.u32 [%out+1073741824], %x;", "beyond what is allocated"),
        ("mov.u64 %out, 0;\n    ld.global.u32 %x, [%out];", "null"),
        ("ld.global.u32 %x, [%own+2];", "not aligned"),
        ("st.global.v2.u32 [%own+4], {%x, %x};", "not aligned"),
        ("ld.shared.u32 %x, [shared_slots+1073741824];", "beyond shared memory"),
    ],
)
def test_bad_accesses_are_errors(device, data, body, what):
    text = frame(f"mov.u32 %x, 0;\n    {body}\n    st.global.u32 [%out], %x;", "global", ".reg .b32 %x;")
    kernel = device.load(text)["kernel"]
    with pytest.raises(manyscale.KernelError):
        kernel[1, THREADS](device.array(data), device.zeros(THREADS * 256, np.uint8))
