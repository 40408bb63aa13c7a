# SPDX-License-Identifier: Apache-2.0
"""Systems of components: described in Python, run by the core."""

from manyscale.system.catalogue import model, models
from manyscale.system.component import Component
from manyscale.system.declarations import Clock, Counter, Gauge, Histogram, Port, Series, Timer
from manyscale.system.running import Result
from manyscale.system.system import System

__all__ = [
    "Clock",
    "Component",
    "Counter",
    "Gauge",
    "Histogram",
    "Port",
    "Result",
    "Series",
    "System",
    "Timer",
    "model",
    "models",
]
