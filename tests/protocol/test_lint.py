"""Each lint rule, broken once by a small literal table, with the fault text that its author would read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import pytest

from procession.protocol.core import (
    Effect,
    Event,
    Identity,
    Kind,
    RemoteProtocolError,
    State,
    Table,
    TableError,
    on,
    stay,
)
from procession.protocol.core.table import ALL_EXITS, Row


class Door(State):
    """A door."""

    SHUT = "It is shut."
    AJAR = "It is open."
    GONE = "It was taken away."


class DoorOn(Event):
    """What can happen to a door."""

    KNOCK = "knock", Kind.MESSAGE, "Somebody knocked."
    BREAK = "break", Kind.DEATH, "It broke."
    LEAVE = "leave", Kind.CANCEL, "Nobody wants it any more."
    LATE = "late", Kind.DEADLINE, "It is late."


class DoorDo(Effect):
    """Effects of a door."""

    CREAK = "creak", "Make a sound."


class Other(State):
    """Another machine's state."""

    SHUT = "It is shut, elsewhere."


class OtherOn(Event):
    """Another machine's events; the first is spelt as one of the door's."""

    KNOCK = "knock", Kind.WORK, "Somebody knocked elsewhere."
    RING = "ring", Kind.MESSAGE, "Somebody rang."


class OtherDo(Effect):
    """Another machine's effects; the first is spelt as the door's."""

    CREAK = "creak", "Make a sound elsewhere."
    SLAM = "slam", "Make a loud sound."


def friend(own: Identity, message: Identity) -> bool:
    """Of this epoch."""
    return own.epoch == message.epoch


def neighbour(own: Identity, message: Identity) -> bool:
    """Of the rank beside."""
    return own.rank + 1 == message.rank


SOUND = (
    on(DoorOn.KNOCK, Door.SHUT, Door.AJAR, after=[DoorDo.CREAK]),
    on(DoorOn.BREAK, [Door.SHUT, Door.AJAR], Door.GONE),
    on(DoorOn.LEAVE, [Door.SHUT, Door.AJAR], Door.GONE),
    on(DoorOn.LATE, [Door.SHUT, Door.AJAR], Door.GONE),
    *stay(Door.GONE, DoorOn.KNOCK),
)


def door(rows: Sequence[Row] = SOUND, **changes: Any) -> Table:
    """A door with these rows."""
    values: dict[str, Any] = {
        "name": "door",
        "purpose": "Lets people in.",
        "states": Door,
        "events": DoorOn,
        "effects": DoorDo,
        "initial": Door.SHUT,
        "final": frozenset({Door.GONE}),
        "waits": {Door.SHUT: ALL_EXITS},
        "rows": tuple(rows),
    }
    return Table(**{**values, **changes})


def faults(rows: Sequence[Row] = SOUND, **changes: Any) -> list[str]:
    """What lint says of a door with these rows; empty if nothing."""
    try:
        door(rows, **changes)
    except TableError as error:
        return list(error.faults)
    return []


def without(trigger: Event) -> list[Row]:
    """The sound rows, less those of one event out of SHUT; AJAR and GONE keep theirs."""
    found: list[Row] = []
    for row in SOUND:
        source = [state for state in row["source"] if row["trigger"] is not trigger or state is not Door.SHUT]
        if source:
            found.append({**row, "source": source})
    return found


def test_a_sound_table_has_no_fault() -> None:
    assert faults() == []
    assert faults(waits={Door.SHUT: ALL_EXITS, Door.AJAR: frozenset()}, because="Nobody waits at AJAR.") == []


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (on(DoorOn.KNOCK, Door.AJAR, Other.SHUT), "AJAR --knock--> SHUT: SHUT is not declared"),
        (on(DoorOn.KNOCK, Other.SHUT, Door.AJAR), "SHUT --knock--> AJAR: SHUT is not declared"),
        (on(OtherOn.RING, Door.AJAR, None), "AJAR --ring--> (stays): ring is not declared"),
        (
            on(DoorOn.KNOCK, Door.AJAR, None, after=[OtherDo.SLAM]),
            "AJAR --knock--> (stays): slam is not declared",
        ),
    ],
    ids=["dest", "source", "trigger", "effect"],
)
def test_an_undeclared_word(row: Row, fault: str) -> None:
    assert faults([*SOUND, row]) == [fault]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (on(OtherOn.KNOCK, Door.AJAR, None), "AJAR --knock--> (stays): knock is not declared"),
        (
            on(DoorOn.KNOCK, Door.AJAR, None, after=[OtherDo.CREAK]),
            "AJAR --knock--> (stays): creak is not declared",
        ),
    ],
    ids=["trigger", "effect"],
)
def test_a_word_of_another_machine_that_is_spelt_the_same(row: Row, fault: str) -> None:
    """Events and effects are strings, and equal if spelt alike; yet another machine's `knock` is of another kind."""
    assert str(OtherOn.KNOCK) == DoorOn.KNOCK
    assert faults([*SOUND, row]) == [fault]


def test_a_bare_string_is_no_event() -> None:
    assert faults([*SOUND, on(cast(Event, "knock"), Door.AJAR, None)]) == [
        "AJAR --knock--> (stays): 'knock' is not declared"
    ]


def test_unknown_and_missing_keys() -> None:
    """pytransitions takes any key of a row for an argument, and none for a default."""
    odd = cast(Row, {**on(DoorOn.KNOCK, Door.AJAR, None), "condition": [friend]})
    short = cast(Row, {"trigger": DoorOn.KNOCK, "source": [Door.AJAR], "dest": None})
    assert faults([*SOUND, odd]) == ["a row has keys that no row has: condition"]
    assert faults([*SOUND, short]) == ["a row lacks keys: after, conditions, unless"]


@pytest.mark.parametrize("field", ["initial", "final", "waits"])
def test_a_named_state_of_another_machine(field: str) -> None:
    value: Any = {"initial": Other.SHUT, "final": frozenset({Other.SHUT}), "waits": {Other.SHUT: ALL_EXITS}}[
        field
    ]
    assert faults(**{field: value}) == ["SHUT is not a state of this table"]


class Mute(State):
    """States, one without a sentence."""

    SHUT = "It is shut."
    AJAR = "open"


class Misspelt(Event):
    """An event whose value is not its name."""

    KNOCK = "konck", Kind.MESSAGE, "Somebody knocked."


class MuteOn(Event):
    """An event without a sentence."""

    KNOCK = "knock", Kind.MESSAGE, " "


class MuteDo(Effect):
    """An effect that is misspelt and says nothing."""

    CREAK = "kreak", "sound"


def test_a_word_without_a_sentence() -> None:
    assert faults([], states=Mute, initial=Mute.SHUT, final=frozenset(), waits={}) == [
        "AJAR has no sentence that says what it means"
    ]
    assert faults([], events=MuteOn) == ["KNOCK has no sentence that says what it means"]


def test_a_misspelt_value() -> None:
    assert faults([], events=Misspelt) == ["Misspelt.KNOCK is spelt 'konck'"]


class Twins(State):
    """Two names with one sentence: to Python's enum the second is but another name of the first."""

    SHUT = "It is shut."
    LOCKED = "It is shut."


def test_two_states_with_the_same_sentence() -> None:
    assert list(Twins) == [Twins.SHUT]
    assert faults([], states=Twins, initial=Twins.SHUT, final=frozenset({Twins.SHUT}), waits={}) == [
        "LOCKED means what SHUT means: the two are one"
    ]


def test_a_lambda_is_no_guard() -> None:
    guard = lambda own, message: own.epoch == message.epoch  # noqa: E731
    (fault,) = faults([*SOUND, on(DoorOn.KNOCK, Door.AJAR, None, conditions=[guard])])
    assert fault.startswith(
        "AJAR --knock--> (stays): a guard must be a named function, not <function test_a_lambda"
    )
    (fault,) = faults([*SOUND, on(DoorOn.KNOCK, Door.AJAR, None, unless=[cast(Any, "friend")])])
    assert fault == "AJAR --knock--> (stays): a guard must be a named function, not 'friend'"
    (fault,) = faults([*SOUND, on(DoorOn.KNOCK, Door.AJAR, None, unless=[partial(friend)])])
    assert fault.startswith(
        "AJAR --knock--> (stays): a guard must be a named function, not functools.partial"
    )


# --- shape and reach --------------------------------------------------------------------------------------------------


def test_a_final_state_with_a_way_out() -> None:
    assert faults([*SOUND, on(DoorOn.LATE, Door.GONE, Door.SHUT)]) == ["GONE is final and has a way out"]


def test_a_state_without_a_way_out_and_without_a_row() -> None:
    rows = [
        {**row, "source": [state for state in row["source"] if state is not Door.AJAR] or row["source"]}
        for row in SOUND
    ]
    assert faults(cast(list[Row], rows)) == ["AJAR is not final and has no way out", "AJAR has no row"]
    held = [*cast(list[Row], rows), *stay(Door.AJAR, DoorOn.KNOCK)]
    assert faults(held) == ["AJAR is not final and has no way out"]


def test_a_loop_is_no_way_out() -> None:
    rows = [on(DoorOn.KNOCK, Door.SHUT, Door.SHUT, after=[DoorDo.CREAK])]
    assert "SHUT is not final and has no way out" in faults(rows)


def test_a_dead_event() -> None:
    rows = [row for row in SOUND if row["trigger"] is not DoorOn.LATE]
    assert faults(rows, waits={}) == ["event 'late' has no row"]


def test_an_unreachable_state() -> None:
    rows = [on(row["trigger"], row["source"], row["dest"]) for row in SOUND]
    rows[0] = on(DoorOn.KNOCK, Door.SHUT, Door.GONE)
    assert faults(rows) == ["AJAR cannot be reached"]


# --- guards -----------------------------------------------------------------------------------------------------------


def test_two_rows_for_the_same_event() -> None:
    assert faults([*SOUND, on(DoorOn.KNOCK, Door.SHUT, Door.GONE)]) == [
        "SHUT, 'knock': 2 rows apply when always"
    ]
    assert faults([*SOUND, on(DoorOn.KNOCK, [Door.AJAR, Door.AJAR], None)]) == [
        "AJAR, 'knock': 2 rows apply when always"
    ]


def test_overlapping_guards() -> None:
    rows = [
        on(DoorOn.KNOCK, Door.AJAR, None, conditions=[friend]),
        on(DoorOn.KNOCK, Door.AJAR, Door.GONE, conditions=[neighbour]),
        on(DoorOn.KNOCK, Door.AJAR, Door.SHUT, unless=[friend, neighbour]),
    ]
    assert faults([*SOUND, *rows]) == [
        "AJAR, 'knock': 2 rows apply when friend is True and neighbour is True"
    ]


def test_a_hole_in_guards() -> None:
    rows = [
        on(DoorOn.KNOCK, Door.AJAR, None, conditions=[friend, neighbour]),
        on(DoorOn.KNOCK, Door.AJAR, Door.GONE, unless=[friend]),
    ]
    assert faults([*SOUND, *rows]) == [
        "AJAR, 'knock': no row applies when friend is True and neighbour is False"
    ]
    closed = on(DoorOn.KNOCK, Door.AJAR, Door.SHUT, conditions=[friend], unless=[neighbour])
    assert faults([*SOUND, *rows, closed]) == []


DROPS = [
    on(DoorOn.KNOCK, Door.AJAR, None, unless=[friend], after=[DoorDo.CREAK]),
    on(DoorOn.KNOCK, Door.AJAR, None, conditions=[friend], unless=[neighbour], after=[DoorDo.CREAK]),
]


def test_a_message_may_be_dropped_for_its_origin_alone() -> None:
    """Of the right origin it is refused, and the error does not name it as allowed."""
    table = door([*SOUND, *DROPS])
    own = Identity(1, 0)
    assert table.step(Door.AJAR, DoorOn.KNOCK, own, Identity(2, 1)).dest is Door.AJAR
    assert table.step(Door.AJAR, DoorOn.KNOCK, own, Identity(1, 2)).after == (DoorDo.CREAK,)
    with pytest.raises(RemoteProtocolError, match="met 'knock'; allowed there: break, late, leave"):
        table.step(Door.AJAR, DoorOn.KNOCK, own, Identity(1, 1))


def test_a_drop_that_leaves_another_case_open() -> None:
    assert faults([*SOUND, DROPS[1]]) == [
        "AJAR, 'knock': no row applies when friend is False and neighbour is True",
        "AJAR, 'knock': no row applies when friend is False and neighbour is False",
    ]


def test_only_a_message_is_dropped_for_its_origin() -> None:
    rows = [row for row in SOUND if row["trigger"] is not DoorOn.LATE]
    late = [on(DoorOn.LATE, Door.SHUT, Door.GONE), on(DoorOn.LATE, Door.AJAR, None, unless=[friend])]
    assert faults([*rows, *late]) == ["AJAR, 'late': no row applies when friend is True"]


def test_a_row_that_does_more_than_drop_leaves_no_case_open() -> None:
    moves = on(DoorOn.KNOCK, Door.AJAR, Door.SHUT, unless=[friend])
    assert faults([*SOUND, moves]) == ["AJAR, 'knock': no row applies when friend is True"]


# --- waits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "kind"),
    [
        (DoorOn.KNOCK, "message"),
        (DoorOn.BREAK, "death"),
        (DoorOn.LEAVE, "cancel"),
        (DoorOn.LATE, "deadline"),
    ],
)
def test_a_wait_that_lacks_an_exit(trigger: Event, kind: str) -> None:
    rows = [*without(trigger), on(DoorOn.KNOCK, Door.AJAR, Door.SHUT)]
    start: dict[str, Any] = {"initial": Door.AJAR, "waits": {Door.SHUT: ALL_EXITS}}
    assert faults(rows, **start) == [f"SHUT waits and has no way out on {kind}"]
    # Expecting the event and staying is no way out.
    assert faults([*rows, *stay(Door.SHUT, trigger)], **start) == [f"SHUT waits and has no way out on {kind}"]


def test_a_wait_that_lacks_all() -> None:
    assert faults(waits={Door.GONE: ALL_EXITS}) == [
        "GONE waits and has no way out on cancel, deadline, death, message"
    ]


def test_a_narrow_wait_needs_a_reason() -> None:
    narrow = {Door.SHUT: ALL_EXITS - {Kind.DEADLINE}}
    assert faults(waits=narrow) == ["SHUT waits for less than all four kinds, and nothing says why"]
    assert faults(waits=narrow, because="The deadline is another machine's.") == []


# --- the report -------------------------------------------------------------------------------------------------------


def test_every_fault_is_reported_at_once() -> None:
    rows = [
        on(DoorOn.KNOCK, Door.SHUT, Door.GONE),
        on(DoorOn.KNOCK, Door.SHUT, Door.GONE),
        on(DoorOn.BREAK, Door.GONE, Door.SHUT),
    ]
    with pytest.raises(TableError) as caught:
        door(rows)
    assert str(caught.value) == (
        "table 'door' is not well formed:\n"
        "  - AJAR is not final and has no way out\n"
        "  - AJAR has no row\n"
        "  - GONE is final and has a way out\n"
        "  - event 'leave' has no row\n"
        "  - event 'late' has no row\n"
        "  - AJAR cannot be reached\n"
        "  - SHUT, 'knock': 2 rows apply when always\n"
        "  - SHUT waits and has no way out on cancel, deadline, death"
    )


def test_a_variant_is_linted_again() -> None:
    with pytest.raises(TableError, match="AJAR cannot be reached"):
        door().but(rows=[row for row in SOUND if row["trigger"] is not DoorOn.KNOCK], waits={})
