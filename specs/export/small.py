"""The small language: Python functions over named variables, read as a program that other checkers can run.

Theory of operation. What is exported is a program in a small part of Python: functions over one object `w`, whose
attributes are the variables of the model. There are two kinds of function. One that is a single `return` is an
*expression*, and is written out wherever it is used. Any other is a *procedure*: assignments, `if`, `while`, `for` over
a range, and calls of procedures. `any` and `all` over a range are written out, too. Numbers and enum members stand for
themselves; `is`, `==` and `in (...)` compare. Whatever else Python has is refused, with its line.

The program is read once into a small tree (`tree`), in which expressions are already written out and folded; each
printer (`murphi`, `promela`) then has only this tree to deal with. Since the text is Python, it can be run as well
(`twin`), and type checkers and readers see ordinary code.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from enum import Enum

from .tree import (
    FALSE,
    TRUE,
    Call,
    Const,
    ExportError,
    Expr,
    For,
    If,
    Local,
    Procedure,
    Set,
    Stmt,
    Value,
    Var,
    While,
    arithmetic,
    compared,
    conjunction,
    disjunction,
    negated,
)

_COMPARE = {ast.Eq: "==", ast.Is: "==", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_DIFFER = (ast.NotEq, ast.IsNot)
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


class Program:
    """Functions in the small language, with the numbers and enum classes that they name."""

    def __init__(self, text: str, names: Mapping[str, int | bool | type[Enum]]) -> None:
        self.text = text
        self.names = names
        found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        self.functions = {function.name: function for function in found}
        if len(self.functions) != len(found):
            raise ExportError("two functions have one name")

    def expression(self, name: str, *arguments: Value) -> Expr:
        """The expression function `name`, written out for constant arguments."""
        return self._write_out(name, [Const(value) for value in arguments])

    def arguments(self, name: str, values: Mapping[str, Value]) -> list[Value]:
        """Those of the named values that function `name` has parameters for, in its order."""
        return [values[parameter] for parameter in _parameters(self._function(name))]

    def procedures(self, roots: Sequence[str]) -> list[Procedure]:
        """`roots` and every procedure that they need, each after those that it calls."""
        done: dict[str, Procedure] = {}

        def visit(name: str, within: tuple[str, ...]) -> None:
            if name in within:
                raise ExportError(f"{name} calls itself")
            if name in done:
                return
            procedure = self._procedure(name)
            for called in _calls(procedure.body):
                visit(called, (*within, name))
            done[name] = procedure

        for root in roots:
            visit(root, ())
        return list(done.values())

    # --- expressions ------------------------------------------------------------------------------------------------

    def _function(self, name: str) -> ast.FunctionDef:
        if name not in self.functions:
            raise ExportError(f"there is no function {name}")
        return self.functions[name]

    def _write_out(self, name: str, arguments: list[Expr]) -> Expr:
        function = self._function(name)
        body = _without_docstring(function.body)
        if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
            raise ExportError(f"{name} is no expression")
        parameters = _parameters(function)
        if len(parameters) != len(arguments):
            raise ExportError(f"{name} takes {parameters}")
        return self.read(body[0].value, dict(zip(parameters, arguments, strict=True)))

    def read(self, node: ast.expr, known: Mapping[str, Expr]) -> Expr:
        """An expression, with what its names stand for."""
        match node:
            case ast.Constant(value=bool() | int() as value):
                return Const(value)
            case ast.Name(id=name):
                if name in known:
                    return known[name]
                number = self.names.get(name)
                if isinstance(number, int):
                    return Const(number)
            case ast.Attribute(value=ast.Name(id="w"), attr=name):
                return Var(name)
            case ast.Attribute(value=ast.Name(id=name), attr=member):
                enum = self.names.get(name)
                if isinstance(enum, type) and member in enum.__members__:
                    return Const(enum.__members__[member])
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id="w"), attr=name), slice=at):
                return Var(name, self.read(at, known))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return negated(self.read(operand, known))
            case ast.BoolOp(op=ast.And(), values=values):
                return conjunction([self.read(value, known) for value in values])
            case ast.BoolOp(op=ast.Or(), values=values):
                return disjunction([self.read(value, known) for value in values])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return arithmetic(_ARITHMETIC[type(op)], self.read(left, known), self.read(right, known))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(self.read(left, known), op, right, known)
            case ast.Call(func=ast.Name(id="any" | "all" as which), args=[ast.GeneratorExp() as generator]):
                cases = self._cases(generator, known)
                return disjunction(cases) if which == "any" else conjunction(cases)
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id="w"), *arguments], keywords=[]):
                return self._write_out(name, [self.read(argument, known) for argument in arguments])
        raise ExportError(f"line {node.lineno}: the small language has no {ast.unparse(node)}")

    def _compared(self, left: Expr, op: ast.cmpop, right: ast.expr, known: Mapping[str, Expr]) -> Expr:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple):
                raise ExportError(f"line {right.lineno}: `in` takes a tuple")
            among = disjunction([compared("==", left, self.read(one, known)) for one in right.elts])
            return among if isinstance(op, ast.In) else negated(among)
        value = self.read(right, known)
        if isinstance(op, _DIFFER):
            return negated(compared("==", left, value))
        return compared(_COMPARE[type(op)], left, value)

    def _cases(self, generator: ast.GeneratorExp, known: Mapping[str, Expr]) -> list[Expr]:
        (loop,) = generator.generators
        assert isinstance(loop.target, ast.Name)
        first, end = self._range(loop.iter)
        if loop.ifs:
            raise ExportError(f"line {generator.lineno}: write the condition into the expression")
        return [
            self.read(generator.elt, {**known, loop.target.id: Const(number)}) for number in range(first, end)
        ]

    def _range(self, node: ast.expr) -> tuple[int, int]:
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[end]):
                return 0, self._bound(end)
            case ast.Call(func=ast.Name(id="range"), args=[start, end]):
                return self._bound(start), self._bound(end)
        raise ExportError(f"line {node.lineno}: only a range can be gone through")

    def _bound(self, node: ast.expr) -> int:
        value = self.read(node, {})
        if isinstance(value, Const) and isinstance(value.value, int):
            return value.value
        raise ExportError(f"line {node.lineno}: a range needs constant bounds")

    # --- statements -------------------------------------------------------------------------------------------------

    def _procedure(self, name: str) -> Procedure:
        function = self._function(name)
        parameters = _parameters(function)
        found: dict[str, bool] = {}
        known: dict[str, Expr] = {parameter: Local(parameter) for parameter in parameters}
        body = self._statements(_without_docstring(function.body), known, found)
        kinds = [_is_truth(argument.annotation) for argument in function.args.args[1:]]
        return Procedure(name, tuple(zip(parameters, kinds, strict=True)), tuple(found.items()), body)

    def _statements(
        self, nodes: Sequence[ast.stmt], known: dict[str, Expr], found: dict[str, bool]
    ) -> tuple[Stmt, ...]:
        return tuple(stmt for node in nodes for stmt in self._statement(node, known, found))

    def _statement(self, node: ast.stmt, known: dict[str, Expr], found: dict[str, bool]) -> list[Stmt]:
        match node:
            case ast.Pass():
                return []
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=ast.expr() as value):
                found[name] = _is_truth(kind)
                known[name] = Local(name)
                return [Set(Local(name), self.read(value, known))]
            case ast.Assign(targets=[target], value=value):
                return [Set(self._target(target, known), self.read(value, known))]
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in _ARITHMETIC:
                place = self._target(target, known)
                return [Set(place, arithmetic(_ARITHMETIC[type(op)], place, self.read(value, known)))]
            case ast.If():
                return self._if(node, known, found)
            case ast.While(test=test, body=body, orelse=[]):
                return [While(self.read(test, known), self._statements(body, known, found))]
            case ast.For(target=ast.Name(id=name), iter=loop, body=body, orelse=[]):
                first, end = self._range(loop)
                if first >= end:
                    return []
                found[name] = False
                known[name] = Local(name)
                return [For(name, first, end, self._statements(body, known, found))]
            case ast.Expr(
                value=ast.Call(func=ast.Name(id=name), args=[ast.Name(id="w"), *arguments], keywords=[])
            ):
                return [Call(name, tuple(self.read(argument, known) for argument in arguments))]
        raise ExportError(f"line {node.lineno}: the small language has no {ast.unparse(node)}")

    def _if(self, node: ast.If, known: dict[str, Expr], found: dict[str, bool]) -> list[Stmt]:
        arms: list[tuple[Expr, tuple[Stmt, ...]]] = []
        rest: list[ast.stmt] = [node]
        while len(rest) == 1 and isinstance(rest[0], ast.If):
            condition = self.read(rest[0].test, known)
            if condition != FALSE:
                arms.append((condition, self._statements(rest[0].body, known, found)))
            if condition == TRUE:
                break
            rest = rest[0].orelse
        else:
            if rest:
                arms.append((TRUE, self._statements(rest, known, found)))
        if arms and arms[0][0] == TRUE:
            return list(arms[0][1])
        return [If(tuple(arms))] if any(body for _, body in arms) else []

    def _target(self, node: ast.expr, known: Mapping[str, Expr]) -> Var | Local:
        target = self.read(node, known)
        if not isinstance(target, Var | Local):
            raise ExportError(f"line {node.lineno}: {ast.unparse(node)} is nothing to assign to")
        return target


def _parameters(function: ast.FunctionDef) -> list[str]:
    first, *others = (argument.arg for argument in function.args.args)
    if first != "w":
        raise ExportError(f"the first parameter of {function.name} is not w")
    return others


def _is_truth(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "bool"


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body


def _calls(body: Sequence[Stmt]) -> list[str]:
    found = []
    for stmt in body:
        match stmt:
            case Call(name=name):
                found.append(name)
            case If(arms=arms):
                found += [name for _, arm in arms for name in _calls(arm)]
            case While(body=inner) | For(body=inner):
                found += _calls(inner)
    return found
