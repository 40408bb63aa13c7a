# SPDX-License-Identifier: Apache-2.0
"""PTX text as modules, functions and instructions. It accepts correct programs; errors are not its business."""

import re
from dataclasses import dataclass, field

from reference.ptx_types import TYPES, Type

# Operands


@dataclass(frozen=True)
class Name:
    """A register, a symbol or a label; `offset` only stands behind symbols."""

    text: str
    offset: int = 0


@dataclass(frozen=True)
class Constant:
    """A literal: an integer, or the text of a floating-point number."""

    value: int | str


@dataclass(frozen=True)
class Negated:
    """!p"""

    name: Name


@dataclass(frozen=True)
class Address:
    """[base + offset]"""

    base: Name | Constant
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """{a, b}"""

    parts: tuple


@dataclass(frozen=True)
class Pair:
    """d|p"""

    first: Name
    second: Name


@dataclass(frozen=True)
class Group:
    """(a, b) in a call."""

    parts: tuple


Operand = Name | Constant | Negated | Address | Vector | Pair | Group


@dataclass(frozen=True)
class Instruction:
    opcode: str
    operands: tuple[Operand, ...]
    guard: str | None = None
    guard_negated: bool = False


@dataclass
class Variable:
    """A declared variable; `count` is None if the array has no size, as that of dynamic shared memory."""

    name: str
    space: str
    type: Type
    count: int | None = 1
    alignment: int = 1
    initial: list | None = None
    external: bool = False

    @property
    def size(self) -> int:
        return self.type.size * (self.count or 0)


@dataclass
class Function:
    name: str
    kernel: bool
    results: list[Variable]
    parameters: list[Variable]
    registers: dict[str, Type] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)
    """.branchtargets and .calltargets, by their label."""
    defined: bool = False


@dataclass
class Module:
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)


_TOKEN = re.compile(
    r"""
    (?P<string>"[^"]*")
  | (?P<number>0[fF][0-9a-fA-F]{8}\b | 0[dD][0-9a-fA-F]{16}\b | 0[xX][0-9a-fA-F]+U? | 0[bB][01]+U?
      | \d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | \d+U?)
  | (?P<name>[A-Za-z_$%][\w$]*(?:\.\w+(?:::\w+)*)*)
  | (?P<directive>\.[A-Za-z_]\w*)
  | (?P<mark>[-+{}()\[\];:,|!@=<>~*])
  | (?P<space>\s+)
    """,
    re.VERBOSE,
)
_IGNORED = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*\.(?:loc|file)\b[^\n]*|\.section\s[^{]*\{[^}]*\}", re.DOTALL | re.MULTILINE
)
_SPACES = ("reg", "global", "const", "shared", "local", "param")
_LINKAGE = ("visible", "extern", "weak", "common")


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    text = _IGNORED.sub(" ", text)
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"cannot read PTX at {text[position : position + 40]!r}")
        position = found.end()
        if found.lastgroup != "space":
            tokens.append(found.group())
    return tokens


def integer(text: str) -> int:
    """The value of an integer literal in the notation of C."""
    text = text.rstrip("U") if not text.lower().startswith("0x") else text.replace("U", "")
    if len(text) > 1 and text[0] == "0" and text.isdigit():
        return int(text, 8)
    return int(text, 0)


class Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.index = 0
        self.module = Module()
        self.scopes: list[dict[str, str]] = []

    # Tokens

    @property
    def next(self) -> str:
        return self.tokens[self.index] if self.index < len(self.tokens) else ""

    def take(self) -> str:
        self.index += 1
        return self.tokens[self.index - 1]

    def accept(self, token: str) -> bool:
        if self.next == token:
            self.index += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise ValueError(f"expected {token!r}, not {self.next!r}")

    def skip_past(self, token: str) -> None:
        while self.take() != token:
            pass

    # Modules

    def parse(self) -> Module:
        external = False
        while self.next:
            token = self.take()
            if token in (".version", ".target", ".address_size"):
                self.take()
                while self.accept(","):
                    self.take()
            elif token in (".entry", ".func"):
                self.function(kernel=token == ".entry")
            elif token[1:] in _SPACES:
                for variable in self.declaration(token[1:]):
                    variable.external = external
                    self.module.variables[variable.name] = variable
            elif token in (".pragma", ".alias"):
                self.skip_past(";")
            elif token[1:] not in _LINKAGE:
                raise ValueError(f"unexpected {token!r} at module level")
            external = token == ".extern"
        return self.module

    def declaration(self, space: str, terminated: bool = True) -> list[Variable]:
        """What follows the state space: attributes, type, names with sizes and initial values."""
        alignment, type_, variables = None, None, []
        while self.next.startswith("."):
            word = self.take()[1:]
            if word == "align":
                alignment = integer(self.take())
            elif word in TYPES:
                type_ = TYPES[word]
            elif word == "attribute":
                self.skip_past(")")
            elif word not in ("ptr", "v2", "v4", *_SPACES):
                raise ValueError(f"unexpected .{word} in a declaration")
        while True:
            name = self.take()
            if self.accept("<"):
                count = integer(self.take())
                self.expect(">")
                variables += [Variable(f"{name}{index}", space, type_) for index in range(count)]
            else:
                count, initial = self.sizes(), None
                if self.accept("="):
                    initial = self.initial_value()
                variables.append(Variable(name, space, type_, count, alignment or type_.size, initial))
            if not terminated:
                return variables
            if self.accept(";"):
                return variables
            self.expect(",")

    def sizes(self) -> int | None:
        count: int | None = 1
        while self.accept("["):
            if self.accept("]"):
                count = None
            else:
                count = (count or 1) * integer(self.take())
                self.expect("]")
        return count

    def initial_value(self) -> list:
        """Nested lists of initial values, flattened."""
        if not self.accept("{"):
            return [self.operand()]
        values = []
        while not self.accept("}"):
            values += self.initial_value()
            self.accept(",")
        return values

    # Functions

    def variable_list(self) -> list[Variable]:
        """(.param .b32 a, .reg .u32 b)"""
        variables = []
        self.expect("(")
        while not self.accept(")"):
            variables += self.declaration(self.take()[1:], terminated=False)
            self.accept(",")
        return variables

    def function(self, kernel: bool) -> None:
        results = self.variable_list() if self.next == "(" else []
        name = self.take()
        parameters = self.variable_list() if self.next == "(" else []
        while self.next not in ("{", ";"):
            self.take()
        if self.accept(";"):
            self.module.functions.setdefault(name, Function(name, kernel, results, parameters))
            return
        function = Function(name, kernel, results, parameters, defined=True)
        self.module.functions[name] = function
        self.scopes = [{each.name: each.name for each in (*results, *parameters)}]
        for each in (*results, *parameters):
            if each.space == "reg":
                function.registers[each.name] = each.type
        self.expect("{")
        self.block(function)

    def block(self, function: Function) -> None:
        self.scopes.append({})
        while not self.accept("}"):
            self.statement(function)
        self.scopes.pop()

    def statement(self, function: Function) -> None:
        token = self.next
        if self.accept("{"):
            self.block(function)
        elif token[1:] in _SPACES and token[0] == ".":
            self.take()
            for variable in self.declaration(token[1:]):
                self.declare(variable, function)
        elif token == ".pragma":
            self.skip_past(";")
        elif self.index + 1 < len(self.tokens) and self.tokens[self.index + 1] == ":":
            self.label(function)
        else:
            function.instructions.append(self.instruction())

    def declare(self, variable: Variable, function: Function) -> None:
        """Names of inner blocks that are taken elsewhere in the function get a number behind them."""
        taken = {*function.registers, *(each.name for each in function.variables), *self.scopes[0]}
        unique = variable.name if variable.name not in taken else f"{variable.name}#{len(taken)}"
        self.scopes[-1][variable.name] = unique
        variable.name = unique
        if variable.space == "reg":
            function.registers[unique] = variable.type
        else:
            function.variables.append(variable)

    def label(self, function: Function) -> None:
        name = self.take()
        self.expect(":")
        if self.next in (".branchtargets", ".calltargets"):
            self.take()
            function.tables[name] = [self.take()]
            while self.accept(","):
                function.tables[name].append(self.take())
            self.expect(";")
        elif self.next == ".callprototype":
            self.skip_past(";")
        else:
            function.labels[name] = len(function.instructions)

    def resolved(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    # Instructions

    def instruction(self) -> Instruction:
        guard, negated = None, False
        if self.accept("@"):
            negated = self.accept("!")
            guard = self.resolved(self.take())
        opcode = self.take()
        operands = []
        while not self.accept(";"):
            operands.append(self.operand())
            self.accept(",")
        return Instruction(opcode, tuple(operands), guard, negated)

    def operands_until(self, end: str) -> tuple:
        parts = []
        while not self.accept(end):
            parts.append(self.operand())
            self.accept(",")
        return tuple(parts)

    def offset(self) -> int:
        """+imm or -imm, as often as they come; + may stand before a negative literal."""
        total = 0
        while self.next in ("+", "-"):
            sign = -1 if self.take() == "-" else 1
            if self.accept("-"):
                sign = -sign
            total += sign * integer(self.take())
        return total

    def operand(self) -> Operand:
        if self.accept("{"):
            return Vector(self.operands_until("}"))
        if self.accept("("):
            return Group(self.operands_until(")"))
        if self.accept("["):
            inner = self.operand()
            self.expect("]")
            if isinstance(inner, Name):
                return Address(Name(inner.text), inner.offset)
            return Address(inner)
        if self.accept("!"):
            return Negated(Name(self.resolved(self.take())))
        if self.next in ("-", "+", "~") or self.next[0].isdigit():
            return self.constant()
        name = self.resolved(self.take())
        if name == "generic" and self.accept("("):  # of a variable in an initial value
            inner = self.operand()
            self.expect(")")
            return Name(inner.text, inner.offset + self.offset())
        if self.accept("|"):
            return Pair(Name(name), Name(self.resolved(self.take())))
        return Name(name, self.offset())

    def constant(self) -> Constant:
        if self.accept("-"):
            inner = self.constant().value
            return Constant(f"-{inner}" if isinstance(inner, str) else -inner)
        if self.accept("~"):
            return Constant(~self.constant().value)
        self.accept("+")
        text = self.take()
        if re.match(r"0[fFdD][0-9a-fA-F]{8}", text) or re.search(r"\.|^\d+[eE]", text):
            return Constant(text)
        return Constant(integer(text))


def parse(text: str) -> Module:
    return Parser(text).parse()


def parse_constant(text: str) -> Constant:
    """A literal as it stands in an instruction."""
    return Parser(text).constant()
