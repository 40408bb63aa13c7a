# SPDX-License-Identifier: Apache-2.0
"""Causes of lost time, the verdict made of them, and the registry of their detectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyscale.gpu.metrics import shown

if TYPE_CHECKING:
    from .execution import Execution

Look = Callable[["Execution"], Iterator["Cause"]]

CAUSES: dict[str, Look] = {}
"""Detectors by name of the function, one for each kind of problem."""


def cause(look: Look) -> Look:
    """Registers a detector of a kind of problem."""
    CAUSES[f"{look.__module__}.{look.__name__}"] = look
    return look


@dataclass(frozen=True)
class Cause:
    """A problem of a kernel: evidence, advice, and the seconds that following it would save."""

    kind: str
    evidence: str
    advice: str
    saved: float = 0.0
    outside: bool = False  # the problem is not in the kernel itself


@dataclass(frozen=True)
class Limit:
    """What limits a kernel: the main cause, and the others by their savings."""

    main: Cause
    others: tuple[Cause, ...] = ()
    seconds: float = 0.0  # that the kernel takes

    @property
    def kind(self) -> str:
        return self.main.kind

    @property
    def evidence(self) -> str:
        return self.main.evidence

    @property
    def advice(self) -> str:
        return self.main.advice

    @property
    def saved(self) -> float:
        """Seconds that following the advice would save, estimated; 0: unknown."""
        return self.main.saved

    @property
    def gain(self) -> str:
        """The saving as text."""
        return self._gain(self.main)

    @property
    def notes(self) -> tuple[str, ...]:
        """Each of the other causes in a sentence."""
        return tuple(f"{other.kind}: {self._text(other)}" for other in self.others)

    def __str__(self) -> str:
        text = f"{self.kind}: {self._text(self.main)}"
        gains = ((other.kind, self._gain(other)) for other in self.others)
        others = "; ".join(f"{kind} ({gain})" if gain else kind for kind, gain in gains)
        return f"{text} Also: {others}." if others else text

    def data(self) -> dict[str, Any]:
        """The same for files and other programs."""
        return {
            "kind": self.kind,
            "evidence": self.evidence,
            "advice": self.advice,
            "gain": self.gain,
            "saved_seconds": self.saved,
            "notes": list(self.notes),
            "text": str(self),
        }

    def _text(self, cause: Cause) -> str:
        gain = self._gain(cause)
        return f"{cause.evidence}. {cause.advice}{f' ({gain})' if gain else ''}."

    def _gain(self, cause: Cause) -> str:
        if cause.saved <= 0 or self.seconds <= 0:
            return ""
        after = max(self.seconds - cause.saved, 1e-3 * self.seconds)
        return (
            f"saves about {shown(cause.saved, 's')} of {shown(self.seconds, 's')}, "
            f"{self.seconds / after:.2f} times as fast"
        )
