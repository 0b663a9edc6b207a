"""The small tree: what a program of the small language is once it has been read.

Theory of operation. Expressions are frozen trees, and are folded while they are built: a comparison of constants is
decided, `and` and `or` drop what is decided. So what a model does not have (calls, listeners, quiet readings) leaves
no trace in what is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

Value = int | bool | Enum


class ExportError(Exception):
    """Something cannot be said in the small language, or not exactly; the export refuses rather than guesses."""


@dataclass(frozen=True)
class Const:
    """A number, a truth value, or an enum member."""

    value: Value


@dataclass(frozen=True)
class Var:
    """A variable of the model, or (with `at`) one of an array of them."""

    name: str
    at: Expr | None = None


@dataclass(frozen=True)
class Local:
    """A parameter or a local variable of a procedure."""

    name: str


@dataclass(frozen=True)
class Op:
    """An operator with its operands: `==`, `<`, `<=`, `+`, `-`, `*`, `not`, `and`, `or`."""

    sign: str
    operands: tuple[Expr, ...]


Expr = Const | Var | Local | Op


@dataclass(frozen=True)
class Set:
    """Assign."""

    target: Var | Local
    value: Expr


@dataclass(frozen=True)
class If:
    """Alternatives in order; the last may have the condition True."""

    arms: tuple[tuple[Expr, tuple[Stmt, ...]], ...]


@dataclass(frozen=True)
class While:
    """Repeat while the condition holds."""

    condition: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class For:
    """`name` goes from `first` up to, and without, `end`."""

    name: str
    first: int
    end: int
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Call:
    """Call a procedure."""

    name: str
    arguments: tuple[Expr, ...]


Stmt = Set | If | While | For | Call


@dataclass(frozen=True)
class Procedure:
    """A procedure: its parameters and its other local variables, each with whether it is a truth value; its body."""

    name: str
    parameters: tuple[tuple[str, bool], ...]
    locals: tuple[tuple[str, bool], ...]
    body: tuple[Stmt, ...]


TRUE, FALSE = Const(True), Const(False)


# --- folding ----------------------------------------------------------------------------------------------------------


def compared(sign: str, left: Expr, right: Expr) -> Expr:
    """A comparison, decided if both sides are constants."""
    if isinstance(left, Const) and isinstance(right, Const):
        if sign == "==":
            return Const(left.value is right.value or left.value == right.value)
        if isinstance(left.value, Enum) or isinstance(right.value, Enum):
            raise ExportError(f"{left.value} and {right.value} have no order")
        less = {"<": left.value < right.value, "<=": left.value <= right.value}
        return Const(less[sign] if sign in less else not less["<=" if sign == ">" else "<"])
    if sign in (">", ">="):
        return Op("<" if sign == ">" else "<=", (right, left))
    return Op(sign, (left, right))


def negated(value: Expr) -> Expr:
    """Not."""
    if isinstance(value, Const):
        return Const(not value.value)
    if isinstance(value, Op) and value.sign == "not":
        return value.operands[0]
    return Op("not", (value,))


def conjunction(values: Sequence[Expr]) -> Expr:
    """And; of nothing, True."""
    kept = [value for value in values if value != TRUE]
    if FALSE in kept:
        return FALSE
    return TRUE if not kept else kept[0] if len(kept) == 1 else Op("and", tuple(kept))


def disjunction(values: Sequence[Expr]) -> Expr:
    """Or; of nothing, False."""
    kept = [value for value in values if value != FALSE]
    if TRUE in kept:
        return TRUE
    return FALSE if not kept else kept[0] if len(kept) == 1 else Op("or", tuple(kept))


def arithmetic(sign: str, left: Expr, right: Expr) -> Expr:
    """Plus, minus, times."""
    if isinstance(left, Const) and isinstance(right, Const):
        one, two = left.value, right.value
        assert isinstance(one, int)
        assert isinstance(two, int)
        return Const({"+": one + two, "-": one - two, "*": one * two}[sign])
    if sign == "+" and left == Const(0):
        return right
    if sign in "+-" and right == Const(0):
        return left
    if sign == "*" and Const(1) in (left, right):
        return left if right == Const(1) else right
    return Op(sign, (left, right))
