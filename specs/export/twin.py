"""The program run by Python, to be walked beside `World`.

Theory of operation. The program's text is Python, so it is compiled and called as it stands, on an object that holds
the variables. A twin state is a tuple of their values; `only` and `only_rank` are in it, scratch is not: every action
begins with scratch at zero.
"""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterator
from typing import Any

from ..world import Now
from .actions import Action
from .glue.words import Only
from .program import Exported
from .tree import Value
from .variables import projected

State = tuple[Any, ...]


class _Variables:
    """The object called `w`."""


class Twin:
    """A program that runs."""

    def __init__(self, model: Exported) -> None:
        self.model = model
        self.names = [variable.name for variable in model.variables if not variable.scratch]
        self.scratch = [variable for variable in model.variables if variable.scratch]
        self.functions: dict[str, Any] = dict(model.program.names)
        functions: list[ast.stmt] = list(model.program.functions.values())
        flags = __future__.annotations.compiler_flag  # annotations are for readers; they are not evaluated
        code = compile(ast.Module(functions, []), f"<{model.model.name}>", "exec", flags=flags)
        # The program is made here from our own glue and tables; nothing of it comes from outside.
        exec(code, self.functions)  # noqa: S102

    def first(self) -> State:
        """Where the model begins."""
        return self._begun(self.model.begin)

    def of(self, now: Now) -> State:
        """The twin's state for a state of `World`."""
        values = projected(now, self.model.size, self.model.model.executor)
        return self._begun(self.model.filled(values))

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        """Each action that may happen, and where it leads."""
        w = self._variables(state)
        if self.model.until and self.functions[self.model.until](w):
            return
        for action in self.model.actions:
            if self._may(w, action):
                after = self._variables(state)
                if action.budget:
                    name = f"b_{action.budget}"
                    setattr(after, name, getattr(after, name) - 1)
                self.functions[action.do](after, *self.model.arguments(action, action.do))
                self.functions["conclude"](after)
                yield action, self._state(after)

    def view(self, state: State) -> Any:
        """The variables of a state, for `holds`."""
        return self._variables(state)

    def holds(self, view: Any, name: str, *arguments: Value) -> bool:
        """An expression function of the program in a state."""
        return bool(self.functions[name](view, *arguments))

    def _may(self, w: Any, action: Action) -> bool:
        if action.budget and getattr(w, f"b_{action.budget}") == 0:
            return False
        if w.only is not Only.NONE:
            return (
                w.only is action.reads
                and w.only_rank == dict(action.arguments)["r"]
                and bool(self.functions[action.can](w, *self.model.arguments(action, action.can)))
            )
        return bool(self.functions[action.can](w, *self.model.arguments(action, action.can)))

    def _begun(self, values: dict[str, Any]) -> State:
        w = _Variables()
        for name, value in values.items():
            setattr(w, name, list(value) if isinstance(value, list) else value)
        self._clear(w)
        self.functions["look_ahead"](w)
        return self._state(w)

    def _variables(self, state: State) -> Any:
        w = _Variables()
        for name, value in zip(self.names, state, strict=True):
            setattr(w, name, list(value) if isinstance(value, tuple) else value)
        self._clear(w)
        return w

    def _clear(self, w: Any) -> None:
        for variable in self.scratch:
            zero = variable.zero
            setattr(w, variable.name, zero if variable.size is None else [zero] * variable.size)

    def _state(self, w: Any) -> State:
        values = (getattr(w, name) for name in self.names)
        return tuple(tuple(value) if isinstance(value, list) else value for value in values)
