# SPDX-License-Identifier: Apache-2.0
"""Workloads: what a machine is given to do, read from files into neutral records without timing."""

from manyscale.workloads.memory_trace import MemoryTrace, read_memory_trace

__all__ = ["MemoryTrace", "read_memory_trace"]
