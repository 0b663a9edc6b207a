"""A run that shows something, as text, as a sequence diagram, and as JSON that can be replayed.

Theory of operation
-------------------
A counterexample, or the witness of a `sometimes`, is plain data: names, labels, action indices and states in words.
It holds no state objects, so that it can be stored beside a test or a bug report and read without the model. Given the
model, `replay` walks it again and compares every label and state, and so finds out at once when the model has moved on.

How a run ends is one of three: it just ends (safety, or a deadlock); it *rests*, repeating its last state for ever
(`cycle` is empty); or it repeats the steps of `cycle` for ever.

The three renderings show the same steps. In the diagram, lifelines stand in order of appearance, what a step sends is
an arrow, a step that sends nothing is a note beside its actor, and what need not have happened (faults, optional
timers: labels that are not fair) stands in a red box.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from .model import Label, Model, fair_key_of, moves
from .path import Path, ReplayError, Step, walk

S = TypeVar("S", bound=Hashable)

FORMAT = "procession.counterexample/1"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A run that violates a property, or (of a `sometimes`) one that shows it."""

    model: str
    property_name: str
    sentence: str
    reason: str
    start: int
    """The position of the first state among the model's initial states."""
    stem: tuple[Step, ...]
    cycle: tuple[Step, ...] | None
    """None: the run ends. Empty: it rests in its last state for ever. Else: these steps repeat for ever."""
    states: tuple[str, ...]
    """Every state of the stem and of one round of the cycle, in words; one more than steps."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The stem and one round of the cycle."""
        return self.stem + (self.cycle or ())

    def __len__(self) -> int:
        """The number of steps, with one round of the cycle."""
        return len(self.steps)

    def __bool__(self) -> bool:
        """True: a run of no steps, where the start itself is bad, is a run all the same."""
        return True

    def to_text(self) -> str:
        """The run as lines of text, one a step."""
        actors = max((len(step.label.actor) for step in self.steps), default=0)
        lines = [f"{self.model}: {self.property_name}", f"  {self.sentence}", f"  {self.reason}"]
        lines.append(f"  from {self.states[0]}")
        for number, step in enumerate(self.steps, start=1):
            if number == len(self.stem) + 1:
                lines.append("  and then, again and again for ever:")
            lines.append(f"{number:4}  {step.label.actor:{actors}}  {_in_words(step.label)}")
        if self.cycle == ():
            lines.append("  and there it rests for ever")
        lines.append(f"  in {self.states[-1]}")
        return "\n".join(lines) + "\n"

    def to_mermaid(self) -> str:
        """The run as a Mermaid sequence diagram."""
        actors: dict[str, str] = {}
        for step in self.steps:
            for name in (step.label.actor, *(end for send in step.label.sends for end in send[:2])):
                actors.setdefault(name, f"p{len(actors)}")
        if not actors:
            actors["nobody"] = "p0"  # Mermaid refuses a diagram without a participant
        lines = ["sequenceDiagram"]
        lines += [f"    participant {key} as {_escape(name)}" for name, key in actors.items()]
        everyone = ",".join(sorted({"p0", f"p{len(actors) - 1}"}))
        lines += _drawn(self.stem, actors)
        if self.cycle:
            lines += ["    loop for ever", *_drawn(self.cycle, actors), "    end"]
        elif self.cycle is not None:
            lines.append(f"    Note over {everyone}: rests here for ever")
        lines.append(f"    Note over {everyone}: {_escape(self.reason)}")
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The run as JSON data; `from_json` reads it back."""
        return {
            "format": FORMAT,
            "model": self.model,
            "property": self.property_name,
            "sentence": self.sentence,
            "reason": self.reason,
            "start": self.start,
            "stem": [_step_to_json(step) for step in self.stem],
            "cycle": None if self.cycle is None else [_step_to_json(step) for step in self.cycle],
            "states": list(self.states),
        }

    def dumps(self) -> str:
        """The run as JSON text."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Counterexample:
        """Read what `to_json` gave. Raises ValueError if it is something else."""
        if data.get("format") != FORMAT:
            raise ValueError(f"not a counterexample: its format is {data.get('format')!r}, not {FORMAT!r}")
        cycle = data["cycle"]
        return cls(
            data["model"],
            data["property"],
            data["sentence"],
            data["reason"],
            data["start"],
            tuple(_step_from_json(step) for step in data["stem"]),
            None if cycle is None else tuple(_step_from_json(step) for step in cycle),
            tuple(data["states"]),
        )

    @classmethod
    def loads(cls, text: str) -> Counterexample:
        """Read what `dumps` gave."""
        return cls.from_json(json.loads(text))


def replay(model: Model[S], run: Counterexample) -> Path[S]:
    """Walk a stored run through the model, round its cycle once.

    Raises ReplayError if the model does not allow it, gives other labels or other states, does not close the cycle, or
    if what repeats for ever is not weakly fair.
    """
    path = walk(model, [step.index for step in run.steps], run.start)
    for number, (stored, found) in enumerate(zip(run.steps, path.steps, strict=True), start=1):
        if stored.label[:3] != found.label[:3]:
            raise ReplayError(
                f"step {number} was ({stored.label.actor} {_in_words(stored.label)}), but {model.name} now has "
                f"({found.label.actor} {_in_words(found.label)}) at that place"
            )
    for number, (stored_state, state) in enumerate(zip(run.states, path.states, strict=False)):
        if stored_state != model.describe(state):
            raise ReplayError(
                f"after step {number} it was ({stored_state}), but {model.name} is now in ({model.describe(state)})"
            )
    if path.states[len(run.stem)] != path.last:
        raise ReplayError(f"the cycle does not close: it ends in ({model.describe(path.last)})")
    if run.cycle is not None and (starved := _starved(model, path, len(run.stem))) is not None:
        raise ReplayError(
            f"what repeats for ever is unfair: {starved.action} of {starved.actor} stays enabled and is never taken"
        )
    return path


def _starved(model: Model[S], path: Path[S], stem: int) -> Label | None:
    """A fair action that is enabled all through the cycle, and whose class the cycle never takes."""
    key_of = fair_key_of(model)
    loop = path.states[stem:]
    taken = {
        key_of(step.label)
        for before, step, after in zip(loop, path.steps[stem:], loop[1:], strict=False)
        if step.label.fair and before != after
    }
    enabled = [{key_of(label): label for label in moves(model, state) if label.fair} for state in loop]
    return next(
        (
            label
            for key, label in enabled[0].items()
            if key not in taken and all(key in others for others in enabled)
        ),
        None,
    )


def _in_words(label: Label) -> str:
    fault = "" if label.fair else "✗ "
    sends = ", ".join(f"{message} → {receiver}" for _, receiver, message in label.sends)
    return (
        fault + label.action + (f"  [{sends}]" if sends else "") + (f"  ({label.note})" if label.note else "")
    )


def _drawn(steps: tuple[Step, ...], actors: dict[str, str]) -> Iterator[str]:
    for step in steps:
        label = step.label
        if not label.fair:
            yield "    rect rgb(255, 220, 220)"
        for sender, receiver, message in label.sends:
            yield f"    {actors[sender]}->>{actors[receiver]}: {_escape(message)}"
        said = ([] if label.sends else [label.action if label.fair else f"✗ {label.action}"]) + [label.note]
        if any(said):
            yield f"    Note over {actors[label.actor]}: {'<br/>'.join(_escape(s) for s in said if s)}"
        if not label.fair:
            yield "    end"


def _escape(text: str) -> str:
    """Keep Mermaid from reading the text as syntax: its comments, statement ends, entities, and the word "end"."""
    text = "".join(f"#{ord(c)};" if c in "#;%<>" else c for c in text)
    text = re.sub(r"\b([Ee])(nd)\b", lambda m: f"#{ord(m[1])};{m[2]}", text)
    return text.replace("\n", "<br/>")


def _step_to_json(step: Step) -> dict[str, Any]:
    label = step.label
    return {
        "index": step.index,
        "actor": label.actor,
        "action": label.action,
        "sends": [list(send) for send in label.sends],
        "note": label.note,
        "fair": label.fair,
    }


def _step_from_json(data: dict[str, Any]) -> Step:
    sends = tuple((sender, receiver, message) for sender, receiver, message in data["sends"])
    return Step(data["index"], Label(data["actor"], data["action"], sends, data["note"], data["fair"]))
