# SPDX-License-Identifier: Apache-2.0
"""Managed memory: arrays that host and device share, whose pages migrate to the side that accesses them."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import InputError

from .array import FREED, DeviceArray, host_array

if TYPE_CHECKING:
    import polars as pl

    from manyscale.machine.gpu_system import GpuSystem
    from manyscale.system.component import NativeComponent

    from .device import Device
    from .stream import QueuedRange, Stream

Side = Literal["device", "host"]
AdviceName = Literal["read_mostly", "preferred_location", "accessed_by"]

PAGE = 4096
_SECOND = 10**15  # femtoseconds
# By advice, whether it is set or unset, and the side it is about.
_ADVICE: dict[str, dict[bool, dict[str, str]]] = {
    "read_mostly": {
        True: {"device": "read_mostly", "host": "read_mostly"},
        False: {"device": "not_read_mostly", "host": "not_read_mostly"},
    },
    "preferred_location": {
        True: {"device": "prefer_device", "host": "prefer_host"},
        False: {"device": "prefer_none", "host": "prefer_none"},
    },
    "accessed_by": {
        True: {"device": "accessed_by_device", "host": "accessed_by_host"},
        False: {"device": "not_accessed_by_device", "host": "not_accessed_by_host"},
    },
}


def side_of(word: Any, what: str) -> Side:
    """`device` or `host`; an error for anything else."""
    if word == "device":
        return "device"
    if word == "host":
        return "host"
    raise InputError(f"{what} is 'device' or 'host', not {word!r}")


def advice_of(advice: Any, on: bool, at: Any) -> _core.GpuAdvice:
    """Advice as an enumerator of the core."""
    if advice not in _ADVICE:
        raise InputError(f"advice is one of {', '.join(_ADVICE)}, not {advice!r}")
    kind: _core.GpuAdvice = getattr(_core.GpuAdvice, _ADVICE[advice][bool(on)][side_of(at, "at")])
    return kind


class ManagedArray(DeviceArray):
    """An array in managed memory: kernels and Python use it alike, and its pages migrate to the side that does.

    Made by `device.managed(shape, dtype)`. Reading it by `numpy()` or `array[…]` and writing it by `set()` or
    `array[…] = …` are accesses of the host: on a device with time they wait for all queued work, and pages on the
    device migrate back first.
    """

    device: Device

    @property
    def _row(self) -> int:
        """Bytes per index of the first axis."""
        return self.nbytes // self.shape[0] if self.shape and self.shape[0] else 0

    def numpy(self) -> npt.NDArray[Any]:
        """A copy on the host: the host reads all of it."""
        self._synchronize()
        self._access(0, self.nbytes, write=False)
        return super().numpy()

    def set(self, values: npt.ArrayLike) -> None:
        """Gives it values of the same shape: the host writes all of it."""
        host = host_array(values, self.dtype)
        self._check_shape(host.shape)
        self._synchronize()
        self._access(0, self.nbytes, write=True)
        self.write(host)

    def __getitem__(self, index: int | slice) -> Any:
        """An index or a range of the first axis: the host reads only that."""
        first, count, scalar = self._part(index)
        self._synchronize()
        self._access(first * self._row, count * self._row, write=False)
        part = self._view(first, count)
        values = DeviceArray.numpy(part)
        return values[0] if scalar else values

    def __setitem__(self, index: int | slice, values: npt.ArrayLike) -> None:
        """Gives an index or a range of the first axis new values: the host writes only that."""
        first, count, _ = self._part(index)
        part = self._view(first, count)
        try:
            host = np.broadcast_to(host_array(values, self.dtype), part.shape)
        except ValueError:
            shape = np.shape(values)
            raise InputError(
                f"an array of shape {shape} does not fit into one of shape {part.shape}"
            ) from None
        self._synchronize()
        self._access(first * self._row, count * self._row, write=True)
        part.write(np.ascontiguousarray(host))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("managed memory cannot be seen by numpy without a copy")
        return self.numpy().astype(self.dtype if dtype is None else dtype, copy=False)

    def prefetch(self, to: Side = "device", *, stream: Stream | None = None) -> QueuedRange | None:
        """Migrates all of its pages to the device or to the host, as `cudaMemPrefetchAsync`, in stream order."""
        queued: QueuedRange | None = self.device.prefetch_range(self.address, self.nbytes, to, stream)
        return queued

    def advise(self, advice: AdviceName, *, on: bool = True, at: Side = "device") -> None:
        """Advises the driver, as `cudaMemAdvise` does; `on=False` withdraws the advice.

        `read_mostly`: reads duplicate pages, and a write leaves one copy. `preferred_location`: pages stay on the
        side `at`. `accessed_by`: the side `at` accesses the pages without a fault, wherever they are.
        """
        self.device.advise_range(self.address, self.nbytes, advice, on, at)

    def locations(self) -> npt.NDArray[np.str_]:
        """Where each of its pages is: `device`, `host`, `both`, `nowhere` (not yet accessed) or `moving`."""
        return self.device.page_locations(self.address, self.nbytes)

    def free(self) -> None:
        """Frees the memory, when all queued work has ended."""
        if self._owns:
            self._owns = False
            self.device.managed_free(self.address)

    def __del__(self) -> None:
        if getattr(self, "_owns", False):
            self._owns = False
            self.device.release_managed(self.address)

    def __repr__(self) -> str:
        return f"<ManagedArray {self.dtype} {self.shape} at {self.address:#x}>"

    def _access(self, offset: int, size: int, *, write: bool) -> None:
        if not self._owns:
            raise InputError(FREED)
        if size:
            self.device.host_access(self.address + offset, size, write)

    def _part(self, index: int | slice) -> tuple[int, int, bool]:
        """The first index and the count that an index selects, and whether it is a single one."""
        if not self.shape:
            raise InputError("an array without axes has no index; use numpy() and set()")
        if isinstance(index, slice):
            first, last, step = index.indices(self.shape[0])
            if step != 1:
                raise InputError("managed memory is read and written in ranges without a step")
            return first, max(last - first, 0), False
        try:
            at = index.__index__()
        except AttributeError:
            raise InputError(
                f"an index is a whole number or a range of the first axis, not {index!r}"
            ) from None
        if not -self.shape[0] <= at < self.shape[0]:
            raise InputError(f"index {at} is outside of an axis of {self.shape[0]}")
        return at % self.shape[0], 1, True

    def _view(self, first: int, count: int) -> DeviceArray:
        shape = (count, *self.shape[1:])
        return DeviceArray(self.native, self.address + first * self._row, shape, self.dtype, owns=False)


class UnifiedMemory:
    """The unified memory of a device with time: its statistics, the location of pages, and its capacity."""

    def __init__(self, parts: GpuSystem, component: NativeComponent, device: _core.GpuDevice) -> None:
        self.component = component
        self._device = device
        self._native = _core.GpuManaged(component.native, [sm.native for sm in parts.sms])
        self._whole = int(component.spec.model_dump()["capacity"])
        self._capacity: int | None = None
        self.explicit_bytes: int | None = None
        """Bytes of the device's memory that other allocations take; None: all that is allocated and not managed."""

    # --- For users ---

    @property
    def capacity(self) -> int:
        """Bytes of the device's memory that managed pages may use; set it to study oversubscription."""
        left = max(self._whole - self._explicit(), 0)
        return left if self._capacity is None else min(left, self._capacity)

    @capacity.setter
    def capacity(self, size: int | None) -> None:
        if size is not None and not (isinstance(size, numbers.Integral) and 0 < size < 2**63):
            raise InputError(f"the capacity is a number of bytes or None, not {size!r}")
        self._capacity = size if size is None else int(size)

    def statistics(self) -> dict[str, int]:
        """Statistics so far by name, including those of the SMs' TLBs."""
        return _core.counter_totals([self.component.native]) | self._native.sm_counts()

    @property
    def tlb_hit_rate(self) -> float | None:
        """Hit rate of the SMs' TLBs for lines of managed memory."""
        counts = self.statistics()
        return _ratio(counts["tlb_hits"], counts["tlb_hits"] + counts["tlb_misses"])

    @property
    def prefetch_accuracy(self) -> float | None:
        """Of the prefetched pages, those that were accessed; None if none was prefetched."""
        counts = self.statistics()
        return _ratio(counts["prefetched_used"], counts["pages_prefetched"])

    @property
    def prefetch_coverage(self) -> float | None:
        """Of the accessed pages, those that had been prefetched, and so did not fault."""
        counts = self.statistics()
        return _ratio(counts["prefetched_used"], counts["prefetched_used"] + counts["pages_faulted_in"])

    def allocations(self) -> pl.DataFrame:
        """A row for each managed allocation: its address, bytes and label, faults, pages moved, pages that thrashed."""
        import polars as pl

        rows = self._native.allocations()
        columns = ("address", "bytes", "label", "faults", "pages_to_device", "pages_to_host")
        schema = dict.fromkeys((*columns, "thrashed_pages", "resident_pages"), pl.Int64)
        return pl.DataFrame(rows, schema=schema | {"label": pl.String}, orient="row")

    def log(self) -> pl.DataFrame:
        """The page log, in the order of its ends; empty unless the device was made with `page_log=`.

        `begin` and `end` in seconds, `address` of the first page, `pages`, `kind` and `cause` as words.
        """
        import polars as pl

        raw = self._native.log()

        def numbers(name: str, kind: npt.DTypeLike) -> npt.NDArray[Any]:
            return np.frombuffer(raw[name], kind)

        return pl.DataFrame(
            {
                "begin": numbers("begin", np.int64) / _SECOND,
                "end": numbers("end", np.int64) / _SECOND,
                "address": numbers("address", np.uint64).astype(np.int64),
                "pages": numbers("pages", np.uint32).astype(np.int64),
                "kind": np.array(_core.gpu_page_events)[numbers("kind", np.uint8)],
                "cause": np.array(_core.gpu_page_causes)[numbers("cause", np.uint8)],
            }
        )

    def __repr__(self) -> str:
        counts = self.statistics()
        return (
            f"<UnifiedMemory: {counts['faults']} page faults in {counts['fault_batches']} batches, "
            f"{counts['bytes_to_device']} B to the device, {counts['bytes_to_host']} B to the host>"
        )

    # --- For the device ---

    def allocate(self, size: int, label: str) -> int:
        """Allocates managed memory."""
        return int(self._native.allocate(self._device, size, label))

    def adopt(self, address: int, size: int, label: str) -> None:
        """Makes existing memory managed; its address is a multiple of 2 MiB."""
        self._native.adopt(address, size, label)

    def free(self, address: int) -> None:
        """Frees managed memory."""
        self._native.free(self._device, address)

    def add_remote(self, address: int, size: int) -> None:
        """Adds a range of remote memory: the host's pinned memory, or another device's."""
        self._native.add_remote(address, size)

    def remove_remote(self, address: int) -> None:
        """Removes a range of remote memory."""
        self._native.remove_remote(address)

    def advise(self, address: int, size: int, advice: _core.GpuAdvice) -> None:
        """Advises the driver on a range."""
        self._native.advise(address, size, advice)

    def locations(self, address: int, size: int) -> npt.NDArray[np.str_]:
        """Where each page of a range is."""
        codes = np.frombuffer(self._native.locations(address, size), np.uint8)
        return np.array(_core.gpu_page_locations)[codes]

    def before_run(self) -> None:
        """Reserves the memory that managed pages may not use now."""
        self._native.reserve(self._whole - self.capacity)

    def _explicit(self) -> int:
        if self.explicit_bytes is not None:
            return self.explicit_bytes
        managed = sum(row["bytes"] for row in self._native.allocations())
        return int(self._device.allocated_bytes - managed)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
