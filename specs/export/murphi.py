"""A program of the small language as a Murphi model, for rumur.

Theory of operation:

1. One action is one instance of one rule, so one step of ours is one step of Murphi's, and the states must be equal
   in number.
2. Murphi has no variables that are not part of the state, so a rule ends by putting scratch back to zero.
3. A state in which a run may end has one more rule. It leads to a state of its own, where everything is zero and
   `ended` is 1, and which goes to and fro between two such states for ever. So rumur's deadlock, "no rule, or none that
   changes anything", is ours: a state that nothing changes and where no run may end. `rests` is what is to be
   subtracted from the states that rumur counts.
4. A stall, a state that no *fair* action changes, is found in the same way in a model of its own (`stalls`): there any
   state may become calm, and nothing but fair actions happens in a calm one.
5. Invariants, witnesses and twins are `cover` properties: rumur counts the states that satisfy each and goes on, so
   that one run gives every verdict and the number of all states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from .program import Exported
from .tree import Call, Const, Expr, For, If, Local, Op, Procedure, Set, Stmt, Value, Var, While
from .variables import Variable

RESTS = 2
"""States that rumur counts and we do not, if any run may end."""

_SIGNS = {"==": "=", "<": "<", "<=": "<=", "+": "+", "-": "-", "*": "*", "and": "&", "or": "|"}


def number(value: Value) -> str:
    """A value as Murphi has it: truth values are its own, enum members are numbers."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(list(type(value)).index(value))
    return str(value)


def murphi(model: Exported, covers: Sequence[tuple[str, Expr]]) -> str:
    """The model as Murphi text; `covers` are the conditions to be counted, each with its name."""
    return "\n".join(_Printer(model, stalls=False).lines(covers)) + "\n"


def stalls(model: Exported) -> str:
    """A model that deadlocks exactly if ours stalls."""
    return "\n".join(_Printer(model, stalls=True).lines(())) + "\n"


class _Printer:
    def __init__(self, model: Exported, *, stalls: bool) -> None:
        self.model = model
        self.stalls = stalls

    def lines(self, covers: Sequence[tuple[str, Expr]]) -> Iterator[str]:
        model = self.model
        yield f"-- {model.model.name}: {model.model.sentence}"
        yield f"-- {model.size.RANKS} ranks; numbers stand for the members of enums, in their order."
        yield "type a_number: 0..255;"
        yield "var"
        yield from (f"  {self.declared(variable)}" for variable in model.variables)
        yield "  ended: 0..2;"
        if self.stalls:
            yield "  calm: boolean;"
        names = sorted({action.do for action in model.actions})
        for procedure in model.program.procedures([*names, "conclude", "look_ahead"]):
            yield from self.procedure(procedure)
        yield from self.forget("forget_scratch", [v for v in model.variables if v.scratch])
        yield from self.forget("forget_state", [v for v in model.variables if not v.scratch])
        yield from self.rules()
        yield from self.begin()
        for name, condition in covers:
            yield f'cover "{name}" ended = 0 & {self.expression(condition)};'

    @staticmethod
    def declared(variable: Variable) -> str:
        kind = "boolean" if variable.kind is bool else f"0..{variable.largest}"
        if variable.size is not None:
            kind = f"array [0..{variable.size - 1}] of {kind}"
        return f"{variable.name}: {kind};"

    def rules(self) -> Iterator[str]:
        # One rule for all actions, by number: rumur's own time grows with the calls that are written down.
        last = len(self.model.actions) - 1
        yield f"ruleset action: 0..{last} do"
        yield 'rule "act" ended = 0 & ('
        yield from self.guards(0, last + 1)
        yield ") ==>"
        yield "begin"
        for place, action in enumerate(self.model.actions):
            yield f"  {'elsif' if place else 'if'} action = {place} then"
            if action.budget:
                yield f"    b_{action.budget} := b_{action.budget} - 1;"
            yield f"    {action.do}({', '.join(map(number, self.model.arguments(action, action.do)))});"
        yield "  endif;"
        yield "  conclude();"
        yield "  forget_scratch();"
        yield "end;"
        yield "end;"
        yield f'rule "may end" ended = 0 & {self.expression(self.model.accepting)} ==>'
        yield f"begin forget_state(); {'calm := false; ' if self.stalls else ''}ended := 1; end;"
        if self.stalls:
            yield 'rule "calm" ended = 0 & !calm ==> begin calm := true; end;'
        yield 'rule "rest" ended > 0 ==> begin ended := 3 - ended; end;'

    def guards(self, first: int, end: int) -> Iterator[str]:
        """The guard of whichever of these actions `action` is, found by halves."""
        if end - first == 1:
            action = self.model.actions[first]
            only = " & !calm" if self.stalls and not action.fair else ""
            yield f"  {self.expression(self.model.guard(action))}{only} -- {action}"
            return
        middle = (first + end) // 2
        yield f"  (action < {middle} & ("
        yield from self.guards(first, middle)
        yield f"  ) | action >= {middle} & ("
        yield from self.guards(middle, end)
        yield "  ))"

    def begin(self) -> Iterator[str]:
        yield 'startstate "first"'
        yield "begin"
        yield "  forget_scratch();"
        yield "  forget_state();"
        for name, value in self.model.begin.items():
            if isinstance(value, list):
                yield from (f"  {name}[{at}] := {number(one)};" for at, one in enumerate(value))
            else:
                yield f"  {name} := {number(value)};"
        yield "  ended := 0;"
        if self.stalls:
            yield "  calm := false;"
        yield "  look_ahead();"
        yield "  forget_scratch();"
        yield "end;"

    @staticmethod
    def forget(name: str, variables: Sequence[Variable]) -> Iterator[str]:
        yield f"procedure {name}();"
        yield "begin"
        for variable in variables:
            zero = number(variable.zero)
            if variable.size is None:
                yield f"  {variable.name} := {zero};"
            else:
                yield f"  for i: 0..{variable.size - 1} do {variable.name}[i] := {zero}; endfor;"
        yield "end;"

    # --- procedures -------------------------------------------------------------------------------------------------

    def procedure(self, procedure: Procedure) -> Iterator[str]:
        parameters = "; ".join(map(self.local, procedure.parameters))
        yield f"procedure {procedure.name}({parameters});"
        if procedure.locals:
            yield "var"
            yield from (f"  {self.local(local)};" for local in procedure.locals)
        yield "begin"
        yield from self.body(procedure.body, 1)
        yield "end;"

    @staticmethod
    def local(local: tuple[str, bool]) -> str:
        """A declaration; locals end in an underscore, so that none hides a variable of the model."""
        name, is_truth = local
        return f"{name}_: {'boolean' if is_truth else 'a_number'}"

    def body(self, body: Sequence[Stmt], depth: int) -> Iterator[str]:
        indent = "  " * depth
        for stmt in body:
            match stmt:
                case Set(target=target, value=value):
                    yield f"{indent}{self.expression(target)} := {self.expression(value)};"
                case Call(name=name, arguments=arguments):
                    yield f"{indent}{name}({', '.join(map(self.expression, arguments))});"
                case While(condition=condition, body=inner):
                    yield f"{indent}while {self.expression(condition)} do"
                    yield from self.body(inner, depth + 1)
                    yield f"{indent}endwhile;"
                case For(name=name, first=first, end=end, body=inner):
                    yield f"{indent}for {name}_ := {first} to {end - 1} do"
                    yield from self.body(inner, depth + 1)
                    yield f"{indent}endfor;"
                case If():
                    yield from self.alternatives(stmt, depth)

    def alternatives(self, stmt: If, depth: int) -> Iterator[str]:
        indent = "  " * depth
        for place, (condition, body) in enumerate(stmt.arms):
            if condition == Const(True):
                yield f"{indent}else"
            else:
                yield f"{indent}{'elsif' if place else 'if'} {self.expression(condition)} then"
            yield from self.body(body, depth + 1)
        yield f"{indent}endif;"

    def expression(self, value: Expr) -> str:
        match value:
            case Const(value=constant):
                return number(constant)
            case Local(name=name):
                return f"{name}_"
            case Var(name=name, at=None):
                return name
            case Var(name=name, at=at) if at is not None:
                return f"{name}[{self.expression(at)}]"
            case Op(sign="not", operands=(operand,)):
                return f"(!{self.expression(operand)})"
            case Op(sign=sign, operands=operands):
                return "(" + f" {_SIGNS[sign]} ".join(map(self.expression, operands)) + ")"
        raise AssertionError(value)
