# SPDX-License-Identifier: Apache-2.0
"""Programs about the language: calls, branches, variables, parameters, printing, memory and textures."""

from __future__ import annotations

import numpy as np
import pytest
from programs_support import Program, close, equal, program, signed

from manyscale import KernelError

pytestmark = pytest.mark.core


@program("recursion")
def test_recursion(run: Program) -> None:
    fibonaccis, ackermanns, parities = np.zeros(80, np.int32), np.zeros(80, np.uint32), np.zeros(80, np.int32)
    run.launch("recursion", 2, 40, fibonaccis, ackermanns, parities)
    numbers = [0, 1]
    while len(numbers) < 11:
        numbers.append(numbers[-1] + numbers[-2])
    closed_forms = (lambda n: n + 1, lambda n: n + 2, lambda n: 2 * n + 3)
    equal(fibonaccis, [numbers[i % 11] for i in range(80)])
    equal(ackermanns, [closed_forms[i % 3](i % 4) for i in range(80)])
    equal(parities, [i % 13 % 2 == 0 for i in range(80)])


@program("quicksort")
def test_quicksort(run: Program) -> None:
    for kernel in ("quicksort_recursive", "quicksort_stack"):
        lists = run.integers(0, 50, (70, 20))
        expected = np.sort(lists, axis=1)
        run.launch(kernel, 2, 48, lists, 20, 70)
        equal(lists, expected)


@program("function_table")
def test_function_table(run: Program) -> None:
    codes, a, b = run.integers(0, 4, 100), run.floats(-9, 9, 100), run.floats(-9, 9, 100)
    out, columns = np.zeros((2, 100), np.float32), np.arange(100)
    run.launch("function_table", 2, 64, codes, a, b, out, 100)
    results = np.stack([a + b, a - b, a * b, np.maximum(a, b)])
    equal(out[0], results[codes, columns])
    equal(out[1], results[3 - codes, columns])


@program("virtual_functions")
def test_virtual_functions(run: Program) -> None:
    count = 70
    sizes, areas, corners = run.floats(1, 9, count), np.zeros(count, np.float32), np.zeros(count, np.int32)
    shapes = run.device.zeros(count, np.uint64)
    run.launch("make_shapes", 2, 48, shapes, sizes, count)
    run.launch("measure_shapes", 2, 48, shapes, areas, corners, count)
    kind = np.arange(count) % 3
    close(areas, np.choose(kind, [3 * sizes * sizes, sizes * (sizes + 1), sizes * sizes + 0.5]), rtol=1e-6)
    equal(corners, np.choose(kind, [0, 4, 4]))


PAIR = np.dtype([("first", "i4"), ("second", "f8")], align=True)
MIXED = np.dtype(
    [
        ("letter", "i1"),
        ("small", "i2"),
        ("pointer", "u8"),
        ("vector", "f4", 3),
        ("bytes", "u1", 5),
        ("wide", "i8"),
    ],
    align=True,
)
LARGE = np.dtype([("count", "i4"), ("table", "f4", 200), ("pairs", PAIR, 4)], align=True)


@program("struct_parameters")
def test_struct_parameters(run: Program) -> None:
    pointee = run.device.array(np.array([77], np.int32))
    pair = np.array((3, 0.25), PAIR)
    mixed = np.array((-5, -300, pointee.address, (1.5, 2.0, 4.0), (250, 1, 2, 3, 9), -(1 << 40)), MIXED)
    out = np.zeros(7)
    run.launch("read_structs", 2, 32, pair[()], mixed.tobytes(), out)
    equal(out, [3.25, -5, -300, 77, 9.5, 259, -(1 << 40)])

    large = np.zeros((), LARGE)
    large["count"] = 90
    large["table"] = run.integers(-50, 50, 200)
    large["pairs"] = [(factor, 0.5 * factor) for factor in (1, 2, 3, 4)]
    indices, result = run.integers(0, 200, 90), np.zeros(96, np.float32)
    run.launch("gather_large", 2, 48, large[()], indices, result)
    pairs = large["pairs"][indices % 4]
    equal(result[:90], (large["table"][indices] + 1) * pairs["first"] + pairs["second"])
    equal(result[90:], 0)


@program("constant_memory")
def test_constant_memory(run: Program) -> None:
    coefficients, x = run.floats(-2, 2, (4, 4)), run.floats(-2, 2, 100)
    run.module.variable("coefficients", np.float32, (4, 4)).set(coefficients)
    polynomials, sums, letters = np.zeros(100, np.float32), np.zeros(100, np.int32), np.zeros(100, np.uint8)
    run.launch("constant_memory", 2, 64, x, polynomials, sums, letters, 100)
    row = coefficients[np.arange(100) % 4].astype(np.float64)
    close(polynomials, (row * x[:, None] ** np.arange(4)).sum(axis=1), rtol=1e-5, atol=1e-5)
    equal(sums, [(3 ** (i % 8 + 1) - 1) // 2 for i in range(100)])
    assert letters.tobytes() == (b"many scales" * 10)[:100]
    equal(run.module.variable("powers", np.int32, 8).numpy(), 3 ** np.arange(8))


@program("device_globals")
def test_variables_of_a_module_last_from_launch_to_launch(run: Program) -> None:
    table = np.array([0.5, 1.5, -2.25, 1e10, 0.1, 7.0])
    words = [sum(word) for word in (b"alpha", b"beta", b"gamma")]
    for launches in (1, 2):
        ints, doubles = np.zeros(5, np.int32), np.zeros(7)
        run.launch("use_globals", 1, 40, ints, doubles)
        equal(ints, [60, 41 + launches, *words])
        equal(doubles, [*(2 * table), -2.25])
        sums = [launches * sum(range(first, 40, 4)) for first in range(4)]
        equal(run.module.variable("zeros", np.int32, 4).numpy(), sums)
        assert run.module.variable("counter", np.int32, 1).numpy()[0] == 41 + launches


@program("dynamic_shared")
def test_dynamic_shared(run: Program) -> None:
    ints, reals = run.integers(-99, 99, (3, 50)), run.floats(-1, 1, (3, 50), np.float64)
    small, out = run.words((3, 50), np.uint8), np.zeros((3, 50))
    run.launch("dynamic_shared", 3, 32, ints, reals, small, out, 50, shared=50 * (8 + 4 + 1))
    close(out, reals + np.roll(ints, -5, axis=1) * np.roll(small, -10, axis=1).astype(int), rtol=1e-14)


@program("generic_pointers")
def test_generic_pointers(run: Program) -> None:
    values, out = run.integers(-99, 99, 32), np.zeros((3, 32), np.int32)
    run.launch("generic_pointers", 1, 32, values, out)
    shared, globals_ = values.copy(), np.zeros(32, int)
    local = np.array([[values[(thread + i) % 32] for i in range(8)] for thread in range(32)])
    for thread in range(32):
        local[thread, thread % 8] += 1000
        target = (shared[thread:], globals_[thread:], local[thread, 2:])[thread % 3]
        target[0] += 7
    sums = [
        (shared.sum(), 5 + 4 + 3 + 2 + 1, values[:16].sum(), local[thread].sum())[thread % 4]
        for thread in range(32)
    ]
    equal(out[0], [2 * total + (thread % 3 == 0) for thread, total in enumerate(sums)])
    equal(out[1], globals_)


def interpret(code: list[int], a: int) -> int:
    """The switch of the program, one case after another."""
    b, at = 1, 0
    while at < len(code):
        match code[at]:
            case 0:
                a = a + b
            case 1:
                a = a - 3 * b
            case 2:
                b = a ^ (b << 1)
            case 3:
                a = a * 5 + 1
            case 4:
                b = b & 0xFFFF
            case 5:
                a, b = b, a
            case 6:
                at += a > b
            case 7:
                a = (a >> 3) | (b & 7)
                b = b + 1 - a
            case 8:
                b = b - a
            case 9:
                a = (a & 0xFFFFFFFF).bit_count()
            case 10:
                a = ~a
            case 11:
                b = max(a, b)
            case 12:
                b = min(a, b) - 1
            case _:
                a += 7
        a, b = signed(a), signed(b)
        at += 1
    return signed(a ^ (b * 31))


@program("switch_cases")
def test_switch_cases(run: Program) -> None:
    count, stride = 100, 40
    codes, lengths = run.integers(0, 16, (count, stride), np.uint8), run.integers(0, stride, count)
    results = np.zeros(count, np.int32)
    run.launch("run_programs", 2, 64, codes, lengths, stride, results, count)
    equal(results, [interpret(codes[i, : lengths[i]].tolist(), i) for i in range(count)])

    choices, results = run.integers(0, 4, count, np.uint32), np.zeros(count, np.uint32)
    run.launch("branch_table", 2, 64, choices, results, count)
    i = np.arange(count)
    equal(results, np.choose(choices, [i + 1, i + 10, i + 20, i * i]))


def collatz_with_detours(x: int) -> int:
    steps = 0
    state = "odd" if x & 1 else "large" if x > 40 else "even"
    while True:
        if state == "even":
            steps += 1
            x //= 2
            if x <= 1:
                return steps * 8 + x
            state = "odd" if x & 1 else "even"
        elif state == "odd":
            steps += 10
            x = 3 * x + 1
            state = "large" if x > 200 else "even"
        else:
            steps += 100
            x -= 37
            state = "large" if x > 100 else "odd" if x & 1 else "even"


def crossing_loops(x: int) -> int:
    total, budget, state = 0, 40, 2 if x % 3 == 0 else 1
    while True:
        if state == 1:
            total = signed(total + x)
            budget -= 1
            if budget < 0:
                return total
            x = (x * 5 + 3) % 64
            state = 2 if x < 20 else 3
        elif state == 3:
            total ^= x
            x = (x + 7) % 64
            if x % 4 == 0:
                state = 1
                continue
            budget -= 1
            if budget < 0:
                return total
            state = 2
        else:
            total = signed(total * 3 + 1)
            x = (x * 3 + 1) % 64
            state = 3 if x % 2 else 1


@program("unstructured_flow")
def test_unstructured_flow(run: Program) -> None:
    for kernel, reference in (("state_machine", collatz_with_detours), ("crossing_loops", crossing_loops)):
        inputs, outputs = np.arange(2, 102, dtype=np.int32), np.zeros(100, np.int32)
        run.launch(kernel, 2, 64, inputs, outputs, 100)
        equal(outputs, [reference(x) for x in range(2, 102)])


def early_exit(values: list[int], i: int) -> int:
    if i % 7 == 3:
        return -100
    index = next((at for at, value in enumerate(values) if value == i or value < 0), None)
    if index is None:
        return -1
    if values[index] < 0:
        return -2
    return next((-j - 1000 for j in range(index) if j * i % 17 == 16), index)


def nested_loops(limit: int, i: int) -> int:
    total = 0
    for a in range(limit):
        b = a
        while True:
            b = (b * 7 + i) % 31
            if b == 5:
                break
            if b % 2:
                total += b
                if total > 5000:
                    return total
                continue
            total += 1
            if b > a + 3:
                break
            b += 1
            if total % 13 == 0:
                break
        total += (a ^ i).bit_count()
        total += 2
        while total % 5 > i % 5:
            total += 2
    return total


@program("divergence")
def test_divergence(run: Program) -> None:
    values, out = run.random.permutation(60).astype(np.int32), np.zeros(90, np.int32)
    values[45] = -1
    run.launch("early_exits", 2, 64, values, 60, out, 90)
    equal(out, [early_exit(values.tolist(), i) for i in range(90)])

    limits, out = run.integers(0, 12, 90), np.zeros(90, np.int32)
    run.launch("nested_loops", 2, 64, limits, out, 90)
    equal(out, [nested_loops(int(limit), i) for i, limit in enumerate(limits)])

    values, out, alone = run.integers(0, 1000, 128), np.zeros(128, np.int32), []
    run.launch("meet_again", 2, 64, values, out)
    for value in values.tolist():
        if value & 1:
            j = 0
            while j < value & 15:
                value, j = signed(value * 3 + j), j + 1
        else:
            value = -value
        alone.append(value)
    equal(out, [signed(alone[i] + alone[i ^ 1]) for i in range(128)])


@program("print_formats")
def test_print_formats(run: Program) -> None:
    number, real = 42, 3.14159265
    printed = run.launch("print_formats", 2, 64, number, real, 0x7F00AB40).printed.splitlines()
    text = f"{real:f} {real:.3f} {real:10.2f}|{real:<10.1f}|{real:e} {real:g}"
    assert printed[:6] == [
        "plain text, 100%",
        "42 -42    42|42   |00042 +42",
        "3000000000 beef BEEF 0xff 10",
        "-1234567890123 12345678901234567890 feedfacecafe",
        text,
        "abc word|   right|left    |cu",
    ]
    assert printed[6].startswith("7 -3|    42|")
    assert int(printed[6].rpartition("|")[2], 16) == 0x7F00AB40
    assert printed[7:] == ["1 0.500000 two 3 4 5.000000"]


@program("print_formats")
def test_all_threads_print(run: Program) -> None:
    printed = run.launch("print_from_all", 3, 40, 100).printed.splitlines()
    expected = [f"thread {100 + thread} of block {block}" for block in range(3) for thread in range(40)]
    assert sorted(printed) == sorted(expected)


@program("assertions")
def test_assertions(run: Program) -> None:
    values, out = 2 * run.integers(-99, 99, 80), np.zeros(80, np.int32)
    run.launch("halve", 2, 64, values, out, 80)
    equal(out, values // 2)
    values[70] += 1
    with pytest.raises(KernelError, match="values"):
        run.launch("halve", 2, 64, values, out, 80)


@program("assertions")
def test_traps(run: Program) -> None:
    out = np.zeros(64, np.int32)
    run.launch("trap_at", 1, 64, 99, out)
    equal(out, 1)
    with pytest.raises(KernelError):
        run.launch("trap_at", 1, 64, 40, out)


@program("device_malloc")
def test_device_malloc(run: Program) -> None:
    lengths, sums = run.integers(0, 12, 70), np.zeros(70, np.int64)
    run.launch("linked_lists", 2, 48, lengths, sums, 70)
    equal(
        sums,
        [sum((int(n) - j) * (i * j + 1) for j in range(int(n))) for i, n in enumerate(lengths)],
    )
    out = np.zeros((3, 64), np.int32)
    run.launch("shared_allocation", 3, 64, out)
    equal(out, [[(63 - thread) * 3 + block for thread in range(64)] for block in range(3)])


@program("clocks")
def test_clocks(run: Program) -> None:
    elapsed, registers = np.zeros((96, 2), np.int64), np.zeros((96, 6), np.uint32)
    work = np.zeros(96, np.float32)
    run.launch("clocks", 2, 48, elapsed, registers, work)
    assert (elapsed > 0).all()
    assert (elapsed < 1_000_000_000).all()
    lane = np.array([thread % 48 % 32 for thread in range(96)])
    equal(registers[:, 0], lane)
    equal(registers[:, 1], (1 << lane) - 1)
    equal(registers[:, 2], 0x100000000 - (1 << lane))
    equal(registers[:, 3:], 1)
    expected = np.arange(96, dtype=np.float32)
    for _ in range(20):
        expected = expected * np.float32(0.5) + np.float32(1)
    close(work, expected, rtol=1e-6)


def interpolated(image: np.ndarray, *coordinates: np.ndarray) -> np.ndarray:
    """Linear interpolation of texels with their centres at halves, the last coordinate along the last axis."""
    result = np.zeros(coordinates[0].shape)
    lows = [np.floor(coordinate - 0.5).astype(int) for coordinate in coordinates]
    for corner in np.ndindex(*(2,) * len(coordinates)):
        weight, index = 1.0, []
        for coordinate, low, up, size in zip(coordinates, lows, corner, image.shape, strict=True):
            part = coordinate - 0.5 - low
            weight = weight * (part if up else 1 - part)
            index.append((low + up).clip(0, size - 1))
        result += weight * image[tuple(index)]
    return result


@program("textures")
def test_textures_by_index(run: Program) -> None:
    values, out = run.floats(-9, 9, 100), np.zeros(100, np.float32)
    run.launch("fetch_1d", 2, 64, run.device.texture(values), out, 100)
    equal(out, values[::-1])
    fours, out = run.words((100, 4), np.int32), np.zeros((100, 4), np.int32)
    run.launch("fetch_int4", 2, 64, run.device.texture(fours, channels=4), out, 100)
    equal(out, fours)


@program("textures")
def test_textures_by_point(run: Program) -> None:
    image, out = run.floats(-9, 9, (12, 20)), np.zeros(100, np.float32)
    x, y = run.floats(-3, 23, 100), run.floats(-3, 15, 100)
    run.launch("sample_2d", 2, 64, run.device.texture(image), x, y, out, 100)
    equal(out, image[np.floor(y).astype(int).clip(0, 11), np.floor(x).astype(int).clip(0, 19)])

    border = run.device.texture(image, address="border")
    run.launch("sample_2d", 2, 64, border, x, y, out, 100)
    inside = (x >= 0) & (x < 20) & (y >= 0) & (y < 12)
    equal(
        out,
        np.where(inside, image[np.floor(y).astype(int).clip(0, 11), np.floor(x).astype(int).clip(0, 19)], 0),
    )

    wrapped = run.device.texture(image, address="wrap", normalized=True)
    run.launch("sample_2d", 2, 64, wrapped, x / 16, y / 16, out, 100)
    equal(out, image[np.floor(y / 16 * 12).astype(int) % 12, np.floor(x / 16 * 20).astype(int) % 20])

    colours, out = run.words((12, 20, 4), np.uint8), np.zeros((100, 4), np.float32)
    run.launch(
        "sample_colours", 2, 64, run.device.texture(colours, channels=4, read="normalized"), x, y, out, 100
    )
    close(
        out,
        colours[np.floor(y).astype(int).clip(0, 11), np.floor(x).astype(int).clip(0, 19)] / 255,
        rtol=1e-6,
    )


@program("textures")
def test_textures_interpolated(run: Program) -> None:
    """The weights have eight bits, so the result may be off by a 256th of a step in each dimension."""
    line, plane, space = run.floats(0, 1, 20), run.floats(0, 1, (12, 20)), run.floats(0, 1, (6, 12, 20))
    x, y, z = run.floats(-2, 22, 100), run.floats(-2, 14, 100), run.floats(-2, 8, 100)
    out = np.zeros(100, np.float32)
    run.launch("sample_1d", 2, 64, run.device.texture(line, filter="linear"), x, out, 100)
    close(out, interpolated(line, x), rtol=0, atol=1 / 256)
    run.launch("sample_2d", 2, 64, run.device.texture(plane, filter="linear"), x, y, out, 100)
    close(out, interpolated(plane, y, x), rtol=0, atol=2 / 256)
    run.launch("sample_3d", 2, 64, run.device.texture(space, filter="linear"), x, y, z, out, 100)
    close(out, interpolated(space, z, y, x), rtol=0, atol=3 / 256)
