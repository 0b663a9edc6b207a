"""How predicates ask about one part of a state: the answer is remembered for each distinct part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from ...protocol.executor import ExecutorState
from ..explore import Property, never
from ..world import Node, Now, Offence
from ..world.ghost import Ghost

T = TypeVar("T")


class _Answers(dict[Node[T], bool], Generic[T]):
    def __init__(self, question: Callable[[T], bool]) -> None:
        super().__init__()
        self.question = question

    def __missing__(self, part: Node[T]) -> bool:
        answer = self[part] = bool(self.question(part.value))
        return answer


def executor(question: Callable[[ExecutorState], bool]) -> Callable[[Now], bool]:
    """A predicate that depends on the executor's machines alone."""
    answers = _Answers(question)
    return lambda now: answers[now.executor]


def record(question: Callable[[Ghost], bool]) -> Callable[[Now], bool]:
    """A predicate that depends on the record alone."""
    answers = _Answers(question)
    return lambda now: answers[now.ghost]


def never_done(
    name: str, sentence: str, offence: Offence, twin: Callable[[Now], bool] | None = None
) -> Property[Now]:
    """Nobody ever commits `offence`."""
    return never(name, sentence, record(lambda ghost: bool(ghost.offences & offence)), twin=twin)
