# SPDX-License-Identifier: Apache-2.0
"""Text with variables of a study in it: "f32[{n}]" with n = 1024 is "f32[1024]"; simple arithmetic is allowed."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from manyscale.errors import InputError, nearest
from manyscale.units import shown

_FIELD = re.compile(r"\{([^{}]*)\}")
_LONGEST_EXPRESSION = 200
_LARGEST = 2**63

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """The value with variables put in; text that is one field only, such as "{n}", becomes what stands there."""
    if isinstance(value, dict):
        return {name: filled(entry, variables) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [filled(entry, variables) for entry in value]
    if not variables or not isinstance(value, str) or "{" not in value:
        return value
    whole = _FIELD.fullmatch(value)
    if whole is not None:
        return _evaluate(whole[1], variables, value)
    return _FIELD.sub(lambda field: str(_evaluate(field[1], variables, value)), value)


def _evaluate(text: str, variables: Mapping[str, Any], within: str) -> Any:
    where = f"{shown(within)}: {{{text[:_LONGEST_EXPRESSION]}}}"
    if len(text) > _LONGEST_EXPRESSION:
        raise InputError(f"{where}: an expression of {len(text)} characters is too long")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, variables, where)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"{where}: write a variable, or arithmetic such as {{n // 256}}") from None
    except ZeroDivisionError:
        raise InputError(f"{where}: this divides by zero") from None
    except TypeError:
        raise InputError(f"{where}: one cannot calculate with these values") from None


def _value(node: ast.expr, variables: Mapping[str, Any], where: str) -> Any:
    if isinstance(node, ast.Name):
        if node.id not in variables:
            raise InputError(f"{where}: there is no variable '{node.id}'; {nearest(node.id, variables)}")
        return variables[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, variables, where)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left, variables, where), _value(node.right, variables, where)
        if isinstance(left, str) or isinstance(right, str):
            raise TypeError
        result = _OPERATORS[type(node.op)](left, right)
        if abs(result) > _LARGEST:
            raise InputError(f"{where}: the result is beyond 64 bits")
        return result
    raise ValueError
