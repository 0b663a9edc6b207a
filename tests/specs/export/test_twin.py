"""The exported program, run by Python beside the world that it restates: states, steps, and every predicate.

A sample is enough here: that the numbers of all states are equal is what rumur is asked (`procession agree`). What
these tests add is *where* the two differ when they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from procession.specs.explore import Limits, Property, search
from procession.specs.explore.property import Kind
from procession.specs.export.asked import parts_of
from procession.specs.export.program import Exported, exported
from procession.specs.export.twin import State, Twin
from procession.specs.export.variables import declared
from procession.specs.models import MODELS
from procession.specs.world import Did, Now

# Labels that name a call where the action does not; not fair, so their classes do not matter.
_NAMES_A_CALL = ("submits", "raised")

SEARCHED = 3_000  # states that are searched for a sample


class Walk:
    """Both sides at `most` states, spread evenly over all that the search finds."""

    def __init__(self, model: Exported, most: int) -> None:
        self.model = model
        self.twin = Twin(model)
        self.known: dict[Now, State] = {}
        self.back: dict[State, Now] = {}
        self.labels: dict[str, tuple[str, str]] = {}
        self.actions: dict[tuple[str, str], str] = {}
        found = search(model.world, limits=Limits(states=SEARCHED)).states
        self.states = found[:: -(-len(found) // most)]

    def run(self) -> None:
        (first,) = self.model.world.initial()
        assert self.meet(first) == self.twin.first()
        for now in self.states:
            self.step(now)

    def meet(self, now: Now) -> State:
        if now not in self.known:
            state = self.twin.of(now)
            # Nothing that tells two states of the world apart may be missing from the variables.
            assert state not in self.back, self.model.world.describe(now)
            self.known[now], self.back[state] = state, now
        return self.known[now]

    def step(self, now: Now) -> None:
        mine: dict[State, list[Did]] = {}
        state = self.meet(now)
        for label, after in self.model.world.actions(now):
            # Else a guard would be no way on, and rumur would be asked the wrong thing about stalls.
            assert after != now, label
            mine.setdefault(self.meet(after), []).append(label)
        theirs: dict[State, list[Any]] = {}
        for action, after_action in self.twin.steps(state):
            theirs.setdefault(after_action, []).append(action)
        assert mine.keys() == theirs.keys(), self.difference(now, mine, theirs)
        for reached, labels in mine.items():
            if len(labels) == len(theirs[reached]) == 1:
                self.same_class(labels[0], theirs[reached][0])

    def same_class(self, label: Did, action: Any) -> None:
        """One fairness class is one action, and the other way round."""
        assert label.fair == action.fair, (label, str(action))
        if label.fair:
            key = (label.actor, label.action)
            assert self.labels.setdefault(str(action), key) == key
            assert self.actions.setdefault(key, str(action)) == str(action)

    def difference(self, now: Now, mine: dict[State, list[Did]], theirs: dict[State, list[Any]]) -> str:
        lines = [self.model.world.describe(now)]
        lines += [f"only the world: {mine[state]}" for state in mine.keys() - theirs.keys()]
        for state in theirs.keys() - mine.keys():
            nearest = min(mine, key=lambda one: sum(map(_differ, one, state)), default=state)
            found = zip(self.twin.names, state, nearest, strict=True)
            words = [f"{name} {one}, not {other}" for name, one, other in found if one != other]
            lines.append(f"only the twin: {[str(action) for action in theirs[state]]}: {'; '.join(words)}")
        return "\n".join(lines)


def _differ(one: object, other: object) -> bool:
    return one != other


def walked(name: str, ranks: int, most: int) -> Walk:
    walk = Walk(exported(MODELS[name], ranks), most)
    walk.run()
    return walk


@pytest.mark.parametrize("name", MODELS)
def test_the_program_steps_as_the_world_does(name: str) -> None:
    walk = walked(name, 1, most=150)
    restated_equally(walk)
    ends_equally(walk)


@pytest.mark.parametrize("name", MODELS)
def test_the_program_steps_as_the_world_does_with_two_ranks(name: str) -> None:
    """A second size is a second shape of every array."""
    walk = walked(name, 2, most=25)
    restated_equally(walk)
    ends_equally(walk)
    every_variable_is_given(walk.model)


def every_variable_is_given(model: Exported) -> None:
    names = {variable.name for variable in declared(model.size, model.world) if not variable.scratch}
    assert names - model.begin.keys() == {"only", "only_rank"}
    assert model.begin.keys() <= names


def ends_equally(walk: Walk) -> None:
    until = walk.model.until
    for now, state in walk.known.items():
        view = walk.twin.view(state)
        may_end = walk.twin.holds(view, "may_end") or (until != "" and walk.twin.holds(view, until))
        assert may_end == walk.model.world.accepting(now), walk.model.world.describe(now)


def restated_equally(walk: Walk) -> None:
    """What the glue says of a property is what the property says, in every state that was met."""
    questions = [one for prop in walk.model.properties for one in restated(walk.model, prop)]
    for now, state in walk.known.items():
        view = walk.twin.view(state)
        for function, numbers, predicate in questions:
            said = walk.twin.holds(view, function, *numbers)
            assert said == bool(predicate(now)), f"{function} in {walk.model.world.describe(now)}"


def restated(model: Exported, prop: Property[Now]) -> Iterator[tuple[str, list[int], Callable[[Now], bool]]]:
    """The functions of the glue for a property, and the predicates that they restate."""
    if prop.kind in (Kind.NO_DEADLOCK, Kind.NO_STALL):
        return
    slug, numbers = parts_of(prop.name)
    for letter, predicate in (("p", prop.predicate), ("q", prop.premise), ("t", prop.twin)):
        if predicate is not None and not (letter == "t" and predicate is prop.premise):
            function = f"{letter}_{slug}"
            # Add it to specs/export/glue/holds*.py: what is not there, rumur and spin cannot be asked.
            assert function in model.program.functions, f"nothing restates {prop.name!r}: {function}"
            yield function, numbers, predicate
