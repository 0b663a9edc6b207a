"""A program of the small language as a Promela model, for spin.

Theory of operation:

1. Weak fairness (`pan -f`) is spin's word for processes: one that can always move must move. Ours is for classes of
   actions. So each fair action is a process of its own, `Fair`, which takes its action whenever it may. All that need
   not happen is one process more, `Unfair`, which may also do nothing at any time, and so is never forced.
2. One action is one `d_step`, as atomic as ours: a guard, and then its procedures as embedded C (`c_code`). In plain
   Promela they do not fit: a `d_step` holds 2048 statements, inlines are copied, and steps that are cut in pieces have
   states in between. `Unfair` first chooses, in the same `atomic`; that state is seen by nobody, and is a stutter to a
   formula without *next*.
3. Variables of the model are Promela's own; scratch and local variables are C's, and no part of the state.
4. What formulas speak of is put into one bit each after every action, because a formula is no place for long
   expressions. A state in which nothing can happen is extended by `Unfair` doing nothing.
5. Formulas are checked one a run (`-N`). No claim about deadlock is made here: with a formula in the file, spin looks
   for none. That is rumur's part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from .program import Exported
from .tree import Call, Const, Expr, For, If, Local, Op, Procedure, Set, Stmt, Value, Var, While
from .variables import Variable

_SIGNS = {"and": "&&", "or": "||"}


@dataclass(frozen=True)
class Formula:
    """`eventually goal`, or with a premise: always, if `premise` then eventually `goal`."""

    name: str
    goal: Expr
    premise: Expr | None


def number(value: Value) -> str:
    """A value as Promela has it."""
    return str(list(type(value)).index(value)) if isinstance(value, Enum) else str(int(value))


def processes(model: Exported) -> int:
    """How many processes the model has, init included."""
    return 2 + sum(action.fair for action in model.actions)


def promela(model: Exported, formulas: Sequence[Formula]) -> str:
    """The model as Promela text, with the formulas that are to be checked."""
    return "\n".join(_Printer(model, formulas).lines()) + "\n"


class _Printer:
    def __init__(self, model: Exported, formulas: Sequence[Formula]) -> None:
        self.model = model
        self.formulas = formulas
        self.scratch = {variable.name for variable in model.variables if variable.scratch}

    def lines(self) -> Iterator[str]:
        model = self.model
        yield f"/* {model.model.name}: {model.model.sentence}"
        yield f"   {model.size.RANKS} ranks; numbers stand for the members of enums, in their order. */"
        for variable in model.variables:
            if not variable.scratch:
                yield f"{'bool' if variable.kind is bool else 'byte'} {variable.name}{_size(variable)};"
        for place in range(len(self.formulas)):
            yield f"bool goal_{place}, premise_{place};"
        for block in self.blocks():
            yield "c_code {"
            yield from block
            yield "}"
        yield from self.fair()
        yield from self.unfair()
        yield from self.init()
        for place, formula in enumerate(self.formulas):
            goal = f"<> goal_{place}"
            text = goal if formula.premise is None else f"[] (premise_{place} -> {goal})"
            yield f"ltl f{place} {{ {text} }}  /* {formula.name} */"

    # --- Promela ----------------------------------------------------------------------------------------------------

    def fair(self) -> Iterator[str]:
        numbers = [place for place, action in enumerate(self.model.actions) if action.fair]
        yield "proctype Fair(byte act) {"
        yield "  do"
        yield "  :: d_step {"
        yield from self.guards(numbers)
        yield "    -> c_code { perform(PFair->act); } }"
        yield "  od"
        yield "}"

    def guards(self, numbers: list[int]) -> Iterator[str]:
        """The guard of whichever of these actions `act` is, found by halves."""
        if len(numbers) == 1:
            action = self.model.actions[numbers[0]]
            yield f"    {self.expression(self.model.guard(action))} /* {action} */"
            return
        middle = len(numbers) // 2
        yield f"    ((act < {numbers[middle]} && ("
        yield from self.guards(numbers[:middle])
        yield f"    )) || (act >= {numbers[middle]} && ("
        yield from self.guards(numbers[middle:])
        yield "    )))"

    def unfair(self) -> Iterator[str]:
        yield "proctype Unfair() {"
        yield "  byte act = 0;"
        yield "  do"
        yield "  :: act == 0  // always; said so because pan refuses a loop on true"
        yield "  :: atomic {"
        yield "    if"
        for place, action in enumerate(self.model.actions):
            if not action.fair:
                yield f"    :: {self.expression(self.model.guard(action))} -> act = {place} /* {action} */"
        yield "    fi;"
        yield "    d_step { c_code { perform(PUnfair->act); PUnfair->act = 0; } } }"
        yield "  od"
        yield "}"

    def init(self) -> Iterator[str]:
        yield "init {"
        yield "  atomic {"
        yield "    c_code { begin(); };"
        for place, action in enumerate(self.model.actions):
            if action.fair:
                yield f"    run Fair({place});"
        yield "    run Unfair()"
        yield "  }"
        yield "}"

    # --- C ----------------------------------------------------------------------------------------------------------

    def blocks(self) -> Iterator[Iterator[str]]:
        """The C, in pieces: one block holds at most 64 kB."""
        scratch = [variable for variable in self.model.variables if variable.scratch]
        yield (f"static int s_{variable.name}{_size(variable)};" for variable in scratch)
        roots = sorted({action.do for action in self.model.actions})
        for procedure in self.model.program.procedures([*roots, "conclude", "look_ahead"]):
            yield self.procedure(procedure)
        yield self.forget(scratch)
        yield self.see()
        yield self.perform()
        yield self.begin()

    @staticmethod
    def forget(scratch: Sequence[Variable]) -> Iterator[str]:
        yield "static void forget_scratch(void) {"
        for variable in scratch:
            zero = number(variable.zero)
            for at in [""] if variable.size is None else [f"[{place}]" for place in range(variable.size)]:
                yield f"  s_{variable.name}{at} = {zero};"
        yield "}"

    def see(self) -> Iterator[str]:
        yield "static void see(void) {"
        for place, formula in enumerate(self.formulas):
            yield f"  now.goal_{place} = {self.c(formula.goal)};"
            if formula.premise is not None:
                yield f"  now.premise_{place} = {self.c(formula.premise)};"
        yield "}"

    def perform(self) -> Iterator[str]:
        yield "static void perform(int action) {"
        yield "  forget_scratch();"
        yield "  switch (action) {"
        for place, action in enumerate(self.model.actions):
            budget = f"now.b_{action.budget}--; " if action.budget else ""
            call = f"p_{action.do}({', '.join(map(number, self.model.arguments(action, action.do)))});"
            yield f"  case {place}: {budget}{call} break;  /* {action} */"
        yield "  }"
        yield "  p_conclude();"
        yield "  see();"
        yield "}"

    def begin(self) -> Iterator[str]:
        yield "static void begin(void) {"
        yield "  forget_scratch();"
        for name, value in self.model.begin.items():
            if isinstance(value, list):
                yield from (f"  now.{name}[{at}] = {number(one)};" for at, one in enumerate(value))
            else:
                yield f"  now.{name} = {number(value)};"
        yield "  p_look_ahead();"
        yield "  see();"
        yield "}"

    def procedure(self, procedure: Procedure) -> Iterator[str]:
        parameters = ", ".join(f"int {name}_" for name, _ in procedure.parameters)
        yield f"static void p_{procedure.name}({parameters or 'void'}) {{"
        for name, _ in procedure.locals:
            yield f"  int {name}_;"
        yield from self.body(procedure.body, 1)
        yield "}"

    def body(self, body: Sequence[Stmt], depth: int) -> Iterator[str]:
        indent = "  " * depth
        for stmt in body:
            match stmt:
                case Set(target=target, value=value):
                    yield f"{indent}{self.c(target)} = {self.c(value)};"
                case Call(name=name, arguments=arguments):
                    yield f"{indent}p_{name}({', '.join(map(self.c, arguments))});"
                case While(condition=condition, body=inner):
                    yield f"{indent}while ({self.c(condition)}) {{"
                    yield from self.body(inner, depth + 1)
                    yield f"{indent}}}"
                case For(name=name, first=first, end=end, body=inner):
                    yield f"{indent}for ({name}_ = {first}; {name}_ < {end}; {name}_++) {{"
                    yield from self.body(inner, depth + 1)
                    yield f"{indent}}}"
                case If(arms=arms):
                    for place, (condition, arm) in enumerate(arms):
                        yield f"{indent}{'} else ' if place else ''}if ({self.c(condition)}) {{"
                        yield from self.body(arm, depth + 1)
                    yield f"{indent}}}"

    def c(self, value: Expr) -> str:
        """An expression in the embedded C."""
        return self.expression(value, "now.")

    def expression(self, value: Expr, owner: str = "") -> str:
        match value:
            case Const(value=constant):
                return number(constant)
            case Local(name=name):
                return f"{name}_"
            case Var(name=name, at=at):
                whole = f"s_{name}" if name in self.scratch else f"{owner}{name}"
                return whole if at is None else f"{whole}[{self.expression(at, owner)}]"
            case Op(sign="not", operands=(operand,)):
                return f"(!{self.expression(operand, owner)})"
            case Op(sign=sign, operands=operands):
                words = (self.expression(operand, owner) for operand in operands)
                return "(" + f" {_SIGNS.get(sign, sign)} ".join(words) + ")"
        raise AssertionError(value)


def _size(variable: Variable) -> str:
    return "" if variable.size is None else f"[{variable.size}]"
