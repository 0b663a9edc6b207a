"""An aggregate, its members and their coupling: rest, quantities, errors, variants."""

from __future__ import annotations

import pickle
from itertools import product

import pytest

from procession.protocol.core import (
    Cluster,
    Coupled,
    Effect,
    Event,
    Identity,
    IllegalEventError,
    Kind,
    LocalProtocolError,
    RemoteProtocolError,
    State,
    Table,
    TableError,
    cluster,
    each,
    every,
    on,
    some,
    stay,
)
from procession.protocol.core.errors import ProtocolError


class Lamp(State):
    """A lamp in a row of lamps."""

    DARK = "It gives no light."
    LIT = "It gives light."
    BROKEN = "It will never give light again."


class LampOn(Event):
    """What can happen to a lamp."""

    LIGHT = "light", Kind.MESSAGE, "It was lit."
    DIM = "dim", Kind.COUPLED, "The row goes dark."
    BREAK = "break", Kind.DEATH, "It broke."


class LampDo(Effect):
    """Effects of lamps."""

    GLOW = "glow", "Glow."
    RING = "ring", "Ring the bell."


class Row(State):
    """All lamps together."""

    PART = "At least one lamp is dark."
    FULL = "Every lamp is lit."
    OFF = "The row is off."


class RowOn(Event):
    """What can happen to the row."""

    ALL = "all", Kind.COUPLED, "The last lamp was lit."
    LOST = "lost", Kind.DEATH, "A lamp broke."
    CLOSE = "close", Kind.CANCEL, "Nobody wants it any more."


LAMP = Table(
    name="lamp",
    purpose="One lamp.",
    states=Lamp,
    events=LampOn,
    effects=LampDo,
    initial=Lamp.DARK,
    final=frozenset({Lamp.BROKEN}),
    rows=(
        on(LampOn.LIGHT, Lamp.DARK, Lamp.LIT, after=[LampDo.GLOW]),
        on(LampOn.DIM, Lamp.LIT, Lamp.DARK),
        *stay(Lamp.DARK, LampOn.DIM),
        on(LampOn.BREAK, [Lamp.DARK, Lamp.LIT], Lamp.BROKEN),
    ),
)
ROW = Table(
    name="row",
    purpose="All lamps.",
    states=Row,
    events=RowOn,
    effects=LampDo,
    initial=Row.PART,
    final=frozenset({Row.OFF}),
    rows=(
        on(RowOn.ALL, Row.PART, Row.FULL, after=[LampDo.RING]),
        on(RowOn.LOST, [Row.PART, Row.FULL], Row.OFF),
        on(RowOn.CLOSE, [Row.PART, Row.FULL], Row.OFF),
        *stay(Row.OFF, RowOn.CLOSE),
    ),
)
COUPLING = (
    every(LAMP, Lamp.LIT, then=RowOn.ALL),
    some(LAMP, Lamp.BROKEN, then=RowOn.LOST),
    each(ROW, Row.OFF, then=LampOn.DIM),
)


def lamps() -> Cluster:
    """A new cluster, with nothing remembered."""
    return Cluster("lamps", ROW, LAMP, COUPLING)


# --- coupling ---------------------------------------------------------------------------------------------------------


def test_initial() -> None:
    assert lamps().initial(2) == (Row.PART, Lamp.DARK, Lamp.DARK)
    assert Cluster("alone", ROW).initial(2) == (Row.PART,)


def test_coupling_to_a_fixed_point() -> None:
    group = lamps()
    state, steps = group.apply((Row.PART, Lamp.LIT, Lamp.DARK), 1, LampOn.LIGHT)
    assert state == (Row.FULL, Lamp.LIT, Lamp.LIT)
    assert [str(step) for step in steps] == [
        "lamps.lamp[1]: DARK --light--> LIT",
        "lamps.row: PART --all--> FULL",
    ]
    assert [step.effects for step in steps] == [(LampDo.GLOW,), (LampDo.RING,)]

    state, steps = group.apply((*state, Lamp.LIT), 0, LampOn.BREAK)
    assert state == (Row.OFF, Lamp.BROKEN, Lamp.DARK, Lamp.DARK)
    assert [str(step) for step in steps] == [
        "lamps.lamp[0]: LIT --break--> BROKEN",
        "lamps.row: FULL --lost--> OFF",
        "lamps.lamp[1]: LIT --dim--> DARK",  # not lamp 0: it has no row for it
        "lamps.lamp[2]: LIT --dim--> DARK",
    ]


@pytest.mark.parametrize("members", list(product(Lamp, repeat=3)))
def test_quantities(members: tuple[Lamp, ...]) -> None:
    """`every` is all, `some` is any; the row acts only where its event moves the one that gets it."""
    quantities = {
        "every": (every(LAMP, Lamp.LIT, Lamp.BROKEN, then=RowOn.CLOSE), Lamp.DARK not in members),
        "some": (some(LAMP, Lamp.LIT, Lamp.BROKEN, then=RowOn.CLOSE), set(members) != {Lamp.DARK}),
    }
    for row, met in quantities.values():
        group = Cluster("lamps", ROW, LAMP, [row])
        # An event of the aggregate that changes nothing but lets the coupling act.
        held = Cluster("lamps", ROW.but(rows=(*ROW.rows, *stay(Row.FULL, RowOn.ALL))), LAMP, [row])
        after, steps = held.apply((Row.FULL, *members), -1, RowOn.ALL)
        assert after[0] is (Row.OFF if met else Row.FULL)
        assert len(steps) == 1 + met
        after, steps = group.apply((Row.OFF, *members), -1, RowOn.CLOSE)
        assert (after, len(steps)) == ((Row.OFF, *members), 1)  # already there: nothing moves


@pytest.mark.parametrize("members", list(product(Lamp, repeat=3)))
def test_each_reaches_every_member_that_it_moves(members: tuple[Lamp, ...]) -> None:
    group = Cluster("lamps", ROW, LAMP, [each(ROW, Row.OFF, then=LampOn.DIM)])
    after, steps = group.apply((Row.PART, *members), -1, RowOn.CLOSE)
    assert after[1:] == tuple(Lamp.DARK if lamp is Lamp.LIT else lamp for lamp in members)
    assert [step.slot for step in steps[1:]] == [
        slot for slot, lamp in enumerate(members) if lamp is Lamp.LIT
    ]


def test_a_coupling_that_never_rests_is_refused() -> None:
    """A lit lamp makes the row full, and a full row with a lit lamp partial again."""
    flicker = ROW.but(
        rows=[
            on(RowOn.ALL, Row.PART, Row.FULL),
            on(RowOn.LOST, Row.FULL, Row.PART),
            on(RowOn.CLOSE, Row.PART, Row.OFF),
        ]
    )
    coupling = [some(LAMP, Lamp.LIT, then=RowOn.ALL), some(LAMP, Lamp.LIT, then=RowOn.LOST)]
    loop = Cluster("flicker", flicker, LAMP, coupling)
    with pytest.raises(
        TableError, match="table 'flicker' is not well formed:\n  - the coupling never comes to"
    ):
        loop.apply((Row.PART, Lamp.DARK), 0, LampOn.LIGHT)


# --- lint -------------------------------------------------------------------------------------------------------------


class Elsewhere(Event):
    """Spelt as one of the row's, and not one of them."""

    CLOSE = "close", Kind.MESSAGE, "Somebody else closed."


def near(own: Identity, message: Identity) -> bool:
    """Of this rank."""
    return own.rank == message.rank


GUARDED = LAMP.but(
    rows=(
        *(row for row in LAMP.rows if row["trigger"] is not LampOn.DIM),
        on(LampOn.DIM, Lamp.LIT, Lamp.DARK, conditions=[near]),
        on(LampOn.DIM, Lamp.LIT, None, unless=[near]),
    )
)


@pytest.mark.parametrize(
    ("member", "row", "fault"),
    [
        (LAMP, every(ROW, Row.FULL, then=RowOn.ALL), "every(row) does not watch this cluster's own machine"),
        (LAMP, each(LAMP, Lamp.LIT, then=LampOn.DIM), "each(lamp) does not watch this cluster's own machine"),
        (LAMP, some(LAMP, Row.FULL, then=RowOn.ALL), "some(lamp) names states that the machine lacks"),
        (LAMP, some(LAMP, Lamp.LIT, then=LampOn.DIM), "'dim' is no event of the machine that would get it"),
        (
            LAMP,
            some(LAMP, Lamp.LIT, then=Elsewhere.CLOSE),
            "'close' is no event of the machine that would get it",
        ),
        (None, each(ROW, Row.OFF, then=LampOn.DIM), "'dim' is no event of the machine that would get it"),
        (
            GUARDED,
            each(ROW, Row.OFF, then=LampOn.DIM),
            "'dim' is guarded; a coupling has no message to show to a guard",
        ),
    ],
)
def test_a_faulty_coupling_row(member: Table | None, row: Coupled, fault: str) -> None:
    with pytest.raises(TableError) as caught:
        Cluster("lamps", ROW, member, [row])
    assert (caught.value.table, caught.value.faults) == ("lamps (coupling)", (fault,))


def test_every_coupling_fault_is_reported_at_once() -> None:
    with pytest.raises(TableError) as caught:
        Cluster("lamps", ROW, LAMP, [some(LAMP, Row.FULL, then=LampOn.DIM)])
    assert len(caught.value.faults) == 2


# --- illegal events ---------------------------------------------------------------------------------------------------


def test_a_message_is_the_peers_fault() -> None:
    group = lamps()
    before = (Row.PART, Lamp.DARK, Lamp.LIT)
    with pytest.raises(RemoteProtocolError) as caught:
        group.apply(before, 1, LampOn.LIGHT)
    assert str(caught.value) == (
        "the peer broke the protocol: machine 'lamps.lamp' of rank 1 is in state LIT (It gives light.) and met "
        "'light'; allowed there: break, dim"
    )
    assert before == (Row.PART, Lamp.DARK, Lamp.LIT)
    assert group.apply(before, 0, LampOn.LIGHT)[0] == (Row.FULL, Lamp.LIT, Lamp.LIT)


def test_anything_else_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        lamps().apply((Row.FULL, Lamp.LIT), -1, RowOn.ALL)
    assert str(caught.value) == (
        "you broke the protocol: machine 'lamps.row' is in state FULL (Every lamp is lit.) and met 'all'; "
        "allowed there: close, lost"
    )
    with pytest.raises(LocalProtocolError, match="allowed there: nothing, the state is final"):
        lamps().apply((Row.FULL, Lamp.BROKEN), 0, LampOn.BREAK)


@pytest.mark.parametrize("kind", [RemoteProtocolError, LocalProtocolError])
def test_errors_survive_a_pickle(kind: type[IllegalEventError]) -> None:
    error = kind("lamps.lamp", 1, Lamp.LIT, LampOn.LIGHT, [LampOn.DIM], ["first", "second"])
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert isinstance(copy, ProtocolError)
    assert (copy.machine, copy.rank, copy.state, copy.event) == ("lamps.lamp", 1, Lamp.LIT, LampOn.LIGHT)
    assert copy.state is Lamp.LIT
    assert copy.event.kind is Kind.MESSAGE
    assert str(copy) == str(error)
    assert str(error).endswith("\nthe story so far:\n  first\n  second")


def test_a_table_error_survives_a_pickle() -> None:
    error = TableError("lamp", ["one", "two"])
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.table, copy.faults, str(copy)) == ("lamp", ("one", "two"), str(error))


def test_a_step_survives_a_pickle() -> None:
    _, steps = lamps().apply((Row.PART, Lamp.DARK), 0, LampOn.LIGHT)
    assert pickle.loads(pickle.dumps(steps)) == steps


def test_a_guarded_event_needs_an_identity() -> None:
    group = Cluster("lamps", ROW, GUARDED, [])
    with pytest.raises(TypeError, match="lamp: 'dim' is guarded; it needs the message's identity"):
        group.apply((Row.PART, Lamp.LIT), 0, LampOn.DIM)
    assert group.apply((Row.PART, Lamp.LIT), 0, LampOn.DIM, Identity(1, 0), Identity(1, 0))[0][1] is Lamp.DARK
    assert group.apply((Row.PART, Lamp.LIT), 0, LampOn.DIM, Identity(1, 0), Identity(1, 1))[0][1] is Lamp.LIT


# --- variants and memory ----------------------------------------------------------------------------------------------


def test_but_replaces_one_table_and_follows_it_in_the_coupling() -> None:
    """A lamp that breaks when it is lit; and neither cluster remembers what the other did."""
    original = lamps()
    before = original.apply((Row.PART, Lamp.DARK), 0, LampOn.LIGHT)
    fragile = LAMP.but(
        rows=(
            on(LampOn.LIGHT, Lamp.DARK, Lamp.BROKEN),
            on(LampOn.LIGHT, Lamp.LIT, Lamp.DARK),
            on(LampOn.DIM, Lamp.DARK, Lamp.LIT),
            *stay(Lamp.LIT, LampOn.DIM),
            on(LampOn.BREAK, [Lamp.DARK, Lamp.LIT], Lamp.BROKEN),
        )
    )
    variant = original.but(fragile)
    assert variant.member is fragile
    assert variant.aggregate is ROW
    assert all(row.watched in (ROW, fragile) for row in variant.coupling)
    assert [str(step) for step in variant.apply((Row.PART, Lamp.DARK), 0, LampOn.LIGHT)[1]] == [
        "lamps.lamp[0]: DARK --light--> BROKEN",
        "lamps.row: PART --lost--> OFF",
    ]
    assert original.apply((Row.PART, Lamp.DARK), 0, LampOn.LIGHT) == before
    assert original.member is LAMP


def test_a_remembered_step_is_the_computed_one() -> None:
    group = lamps()
    first = group.apply((Row.PART, Lamp.DARK), 0, LampOn.LIGHT)
    assert group.apply((Row.PART, Lamp.DARK), 0, LampOn.LIGHT) is first
    assert lamps().apply((Row.PART, Lamp.DARK), 0, LampOn.LIGHT) == first


def test_what_a_cluster_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """N ranks answer in 2^N orders; an executor with 32 of them would remember every one it ever met."""
    monkeypatch.setattr(cluster, "MEMORY", 10)
    group = lamps()
    for members in product((Lamp.DARK, Lamp.LIT), repeat=6):
        group.apply((Row.PART, Lamp.DARK, *members), 0, LampOn.LIGHT)
        assert len(group._memo) <= 10
    assert lamps().apply((Row.PART, Lamp.DARK), 0, LampOn.LIGHT)[0] == (Row.FULL, Lamp.LIT)
