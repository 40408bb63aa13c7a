# SPDX-License-Identifier: Apache-2.0
"""The tests of asynchronous copies, barriers in memory, textures and surfaces once more, as SASS."""

import functools

import numpy as np
import pytest
import test_async_instructions as copies
import test_surface_instructions as surfaces
import test_texture_instructions as textures
from sass_support import needs_assembler

from manyscale import InputError, gpu

pytestmark = [pytest.mark.core, needs_assembler]

values = copies.values
random = textures.random

test_copy = copies.test_copy
test_copies_reach_other_threads_after_a_barrier = copies.test_copies_reach_other_threads_after_a_barrier
test_bytes_beyond_the_source_are_zero = copies.test_bytes_beyond_the_source_are_zero
test_a_source_that_is_not_read_may_be_anywhere = copies.test_a_source_that_is_not_read_may_be_anywhere
test_a_negated_predicate_that_ignores_the_source = copies.test_a_negated_predicate_that_ignores_the_source
test_a_guard_keeps_copies_out = copies.test_a_guard_keeps_copies_out
test_all_threads_meet = copies.test_all_threads_meet
test_phases_follow_each_other = copies.test_phases_follow_each_other
test_parity = copies.test_parity
test_counts_of_arrivals = copies.test_counts_of_arrivals
test_who_drops_out_is_not_expected_again = copies.test_who_drops_out_is_not_expected_again
test_bytes_are_waited_for = copies.test_bytes_are_waited_for
test_copies_arrive = copies.test_copies_arrive
test_memory_of_an_invalid_mbarrier_can_be_used = copies.test_memory_of_an_invalid_mbarrier_can_be_used

test_sampling_follows_the_guide = textures.test_sampling_follows_the_guide
test_channels = textures.test_channels
test_indices_are_not_filtered = textures.test_indices_are_not_filtered
test_forms_of_tex = textures.test_forms_of_tex
test_gather_takes_the_four_texels_around = textures.test_gather_takes_the_four_texels_around
test_cubes_are_read_by_direction = textures.test_cubes_are_read_by_direction

test_each_thread_finds_its_element = surfaces.test_each_thread_finds_its_element
test_outside_is_the_nearest_element_zero_or_a_fault = (
    surfaces.test_outside_is_the_nearest_element_zero_or_a_fault
)


@pytest.fixture(scope="module")
def device() -> gpu.Device:
    return gpu.Device(isa="sass", maximum_instructions=1_000_000, echo=False)


@pytest.fixture(autouse=True)
def _devices_run_sass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that tests make themselves."""
    monkeypatch.setattr(gpu, "Device", functools.partial(gpu.Device, isa="sass"))


UPDATES = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry update(.param .u64 surface)
{
    .reg .b32 %r<4>;
    .reg .b64 %s;
    ld.param.u64 %s, [surface];
    mov.u32 %r0, %tid.x;
    and.b32 %r1, %r0, 3;
    shl.b32 %r1, %r1, 2;
    sured.b.add.1d.u32.trap [%s, {%r1}], %r0;
    sured.b.max.1d.u32.zero [%s, {%r1}], 99;
    ret;
}
"""


def test_updates_of_a_surface(device: gpu.Device) -> None:
    """Sums of threads 0 to 31 that are equal modulo four, and the largest."""
    array = device.array(np.array([1000, 2, 3, 4], np.uint32))
    surface = device.texture(array)
    device.load(UPDATES)["update"][1, 32](surface.handle)
    expected = np.maximum(np.array([1000, 2, 3, 4]) + [8 * first + 112 for first in range(4)], 99)
    np.testing.assert_array_equal(array.numpy(), expected)


BULK_COPY = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %d<5>;
    .shared .align 16 .b8 tile[512];
    .shared .align 8 .b64 barrier;
    ld.param.u64 %d0, [from];
    ld.param.u64 %d1, [to];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, tile;
    mov.u32 %r2, barrier;
    setp.ne.u32 %p, %r0, 0;
    @%p bra WAIT;
    mbarrier.init.shared.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d0], 512, [%r2];
WAIT:
    bar.sync 0;
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;
    @!%p bra AGAIN;
    shl.b32 %r3, %r0, 2;
    xor.b32 %r4, %r3, 508;
    add.u32 %r4, %r4, %r1;
    ld.shared.u32 %r5, [%r4];
    cvt.u64.u32 %d2, %r3;
    add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r5;
    ret;
}
"""


def test_a_bulk_copy_ends_at_its_barrier(device: gpu.Device) -> None:
    values = np.arange(128, dtype=np.uint32)
    source, target = device.array(values), device.zeros(128, np.uint32)
    device.load(BULK_COPY)["copy"][1, 128](source, target)
    np.testing.assert_array_equal(target.numpy(), values[::-1])


def test_what_is_not_executed_is_named(device: gpu.Device) -> None:
    text = BULK_COPY.replace("bar.sync 0;", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;")
    with pytest.raises(InputError, match=r"UCGABAR_ARV: the instruction is not supported"):
        device.load(text)
