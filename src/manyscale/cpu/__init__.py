# SPDX-License-Identifier: Apache-2.0
"""RISC-V programs on simulated out-of-order multicores: runs, their results, symbols, listings, checks."""

from manyscale.cpu.predictors import Predictor, predictors, register_predictor, registered_predictor
from manyscale.cpu.program import Program, sample
from manyscale.cpu.recording import RecordingSummary, record
from manyscale.cpu.replaying import replay
from manyscale.cpu.result import CpuResult, FunctionalResult, Process
from manyscale.cpu.running import run, run_functional
from manyscale.cpu.symbols import SourceLocation, Symbols
from manyscale.cpu.trace import Trace
from manyscale.cpu.trace_file import IncompleteTraceError, TraceError

__all__ = [
    "CpuResult",
    "FunctionalResult",
    "IncompleteTraceError",
    "Predictor",
    "Process",
    "Program",
    "RecordingSummary",
    "SourceLocation",
    "Symbols",
    "Trace",
    "TraceError",
    "predictors",
    "record",
    "register_predictor",
    "registered_predictor",
    "replay",
    "run",
    "run_functional",
    "sample",
]
