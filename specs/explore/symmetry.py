"""Search modulo symmetry, and the gate that a canonical form must pass first.

Theory of operation
-------------------
Ranks that play the same part make states that differ only in who is who. A model may give ``canonical(state)``, which
picks one state of each such class, and the search then keeps that one alone: up to N! times fewer states.

*None of this is free.* Readiness is collected in rank order, so that the ranks already collected, the one being
collected, and those not yet collected play three different parts. Sorting all ranks together reaches states that do not
exist, and reports deadlocks that no run has. Sorting within the three parts reaches exactly the right states; and even
so, two ranks that may be exchanged *looking back* (whichever of the two was first, the same has happened) may not be
exchanged *looking forward*: one of them will be collected first. Hence three rules:

1. *The gate.* On a size where the full search is cheap, `gate` compares the canonical forms of the states of the full
   search with the states of the reduced one, as sets, and the verdicts of both. In every state it tests that canonical
   leaves its own results alone, and that a state and its form agree on every predicate and on whether they can move.
   The two together make every verdict on *states* right at that size. For larger sizes it is evidence, not proof.
2. *Properties of paths are judged on the full graph*: `recoverable`, since it looks forward, and `eventually` and
   `leads_to`, since moreover a fairness class names its actor by default. The next representative may call the same
   process by another rank, so that on a reduced graph a starving rank can look served, and a served one starved.
   `check` makes a second, full search for these. One case is a matter of states after all: where no cycle is left,
   every fair run ends by resting in a state without fair actions, and if the goal is true in each of those, it holds.
3. *A violation must have a run.* A path of the reduced graph is walked again in the model itself. Where that fails, the
   property is judged by the full search as well: which finds a run, or does not finish (*not established*), or finds
   that there is no violation and so convicts the canonical form.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

from .check import check
from .liveness import is_acyclic
from .model import Model, ModelError, canonical_of, moves
from .property import Property
from .search import Limits, search
from .verdict import Judgement, Verdict

S = TypeVar("S", bound=Hashable)


def gate(model: Model[S], properties: Sequence[Property[S]] = (), limits: Limits | None = None) -> Judgement:
    """Whether ``model.canonical`` is sound on this model, at this size, for these properties.

    *Violated* says which comparison failed, with an example. *Not established*: a limit stopped the full search.
    Raises ValueError if the model has no canonical form.
    """
    canonical = canonical_of(model)
    if canonical is None:
        raise ValueError(f"{model.name} has no canonical form")
    full = search(model, limits=limits)
    if full.truncated:
        return Judgement(Verdict.NOT_ESTABLISHED, f"the full search is incomplete: {full.truncated}")
    sound = Judgement(
        Verdict.HOLDS,
        f"{len(full.states):,} states and their reduction agree on {len(properties)} properties",
    )
    try:
        return next(_problems(model, canonical, properties, full.states), sound)
    except ModelError as error:  # not from the model's own states: the full search has passed
        return Judgement(Verdict.VIOLATED, f"the reduced search fails: {error}")


def _problems(
    model: Model[S], canonical: Callable[[S], S], properties: Sequence[Property[S]], states: Sequence[S]
) -> Iterator[Judgement]:
    expected = set(map(canonical, states))
    # An unsound form can reach states without end; beyond this many, it has already shown itself.
    reduced = search(model, canonical=canonical, limits=Limits(states=len(states)))
    for differing, what in (
        (set(reduced.states) - expected, "reaches {} states that do not exist"),
        (expected - set(reduced.states), "misses {} classes of states"),
    ):
        if differing:
            example = min(map(model.describe, differing))
            found = f"the reduced search {what.format(len(differing))}, such as ({example})"
            yield Judgement(Verdict.VIOLATED, found)
    yield from _local_problems(model, canonical, properties, states)
    cyclic = [not is_acyclic(search(model, edges=True, canonical=form)) for form in (None, canonical)]
    if cyclic[0] and not cyclic[1]:
        yield Judgement(Verdict.VIOLATED, "the reduction has lost every cycle of the full graph")
    judged = check(model, properties).outcomes, check(model, properties, symmetry=True).outcomes
    for plain, modulo in zip(*judged, strict=True):
        if plain.verdict is not modulo.verdict:
            found = (
                f"{plain.name} is {plain.verdict} in the full search and {modulo.verdict} in the reduced one"
            )
            yield Judgement(Verdict.VIOLATED, found)


def _local_problems(
    model: Model[S], canonical: Callable[[S], S], properties: Sequence[Property[S]], states: Sequence[S]
) -> Iterator[Judgement]:
    def can_move(state: S) -> tuple[bool, bool]:
        labels = moves(model, state)
        return bool(labels), any(label.fair for label in labels)

    predicates: list[tuple[str, Callable[[S], Any]]] = [("accepting", model.accepting), ("moving", can_move)]
    for p in properties:
        if not p.kind.needs_full_graph:
            predicates += [(p.name, p.predicate)] if p.kind.has_predicate else []
            predicates += [(f"the twin of {p.name}", p.twin)] if p.twin else []
    for state in states:
        form = canonical(state)
        where = f"({model.describe(state)}) and its canonical form ({model.describe(form)})"
        if canonical(form) != form:
            yield Judgement(Verdict.VIOLATED, f"canonical changes its own result, in {where}")
        for name, predicate in predicates:
            if predicate(state) != predicate(form):
                yield Judgement(Verdict.VIOLATED, f"{name} tells apart {where}")
