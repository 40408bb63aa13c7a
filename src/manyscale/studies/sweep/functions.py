# SPDX-License-Identifier: Apache-2.0
"""Functions as workloads: named as module:function, or sent along when they are part of a script or notebook."""

from __future__ import annotations

import base64
import functools
import importlib
import inspect
import numbers
import pickle
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from manyscale.errors import InputError, ManyscaleError
from manyscale.studies.sweep.workload import Outcome, RunRequest

_SENT = "sent:"


def name_of(function: Callable[..., Any]) -> str:
    """Text by which a worker finds a function: its name, or all of it if it has none that others can import."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module not in (None, "__main__") and "<" not in name:
        return f"{module}:{name}"
    try:
        import cloudpickle  # type: ignore[import-untyped]
    except ImportError:
        raise InputError(
            f"{name or function} is part of a script or notebook: put it into a module that workers can import, "
            "or pip install cloudpickle"
        ) from None
    return _SENT + base64.b85encode(cloudpickle.dumps(function)).decode()


def shown_name(name: str) -> str:
    """A function's name for people."""
    return "a function of the script" if name.startswith(_SENT) else name


@functools.lru_cache(maxsize=16)
def find_function(name: str) -> Callable[..., Any]:
    """The function that a text names."""
    if name.startswith(_SENT):
        found: Any = pickle.loads(base64.b85decode(name.removeprefix(_SENT)))
        assert callable(found)
        return found  # type: ignore[no-any-return]
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise InputError(f"'{name}' names no function; write module:function")
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever a module does while it is imported
        raise InputError(f"{module} cannot be imported: {type(error).__name__}: {error}") from None
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InputError(f"the module {module} has no function '{path}'")
    return found  # type: ignore[no-any-return]


def source_of(name: str) -> Path | None:
    """The file of a function's module, without importing it; None if there is no such file."""
    module = name.partition(":")[0]
    if name.startswith(_SENT) or not module:
        return None
    for folder in sys.path:
        base = Path(folder or ".").joinpath(*module.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
    return None


def call_function(request: RunRequest) -> Outcome:
    """Calls the function of a workload; what it returns are the numbers of the point."""
    options = dict(request.workload)
    name = options.pop("function")
    function = find_function(name)
    offered = {"seed": request.seed, "machine": request.machine, "changes": list(request.changes)}
    options |= {key: value for key, value in offered.items() if key not in options and _takes(function, key)}
    return _outcome(function(**options), shown_name(name))


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _outcome(result: Any, name: str) -> Outcome:
    headline = getattr(result, "headline", None)
    if isinstance(headline, Mapping):  # a result of ours
        return Outcome(headline, lambda: result.columns)
    if isinstance(result, numbers.Real):
        result = {"result": result}
    if not isinstance(result, Mapping):
        raise ManyscaleError(
            f"{name} returned {type(result).__name__}; it returns a number, a dictionary of numbers or a result"
        )
    return Outcome({str(key): _entry(str(key), value, name) for key, value in result.items()})


def _entry(key: str, value: Any, name: str) -> dict[str, Any]:
    unit: Any = "1"
    if isinstance(value, Mapping) and set(value) == {"value", "unit"}:
        value, unit = value["value"], value["unit"]
    if value is not None and not isinstance(value, numbers.Real):
        raise ManyscaleError(f"{name} returned {key} = {value!r:.60}, which is not a number")
    if isinstance(value, numbers.Integral):
        value = int(value)
    return {"value": value if value is None or isinstance(value, int) else float(value), "unit": str(unit)}
