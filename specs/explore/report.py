"""What a check found: one outcome a property, as data, JSON and JUnit XML.

Theory of operation
-------------------
A report repeats what was explored (states, transitions, depth, seconds, and why the search ended early if it did)
beside every verdict, because *holds* means nothing without it. In JUnit's terms a violated property is a `failure`, and
one that was not established is an `error`: a tool that reads JUnit must not count it as passed, nor as skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from .counterexample import Counterexample
from .property import Kind
from .verdict import Verdict, worst

FORMAT = "procession.report/1"


@dataclass(frozen=True, slots=True)
class Explored:
    """How much was looked at."""

    how: str
    """"search", "search modulo symmetry" or "simulation"."""
    states: int
    transitions: int
    depth: int
    seconds: float
    truncated: str | None = None

    def __str__(self) -> str:
        rate = f"{self.states / self.seconds:,.0f}/s" if self.seconds > 0 else "at once"
        end = f"; {self.truncated}" if self.truncated else ""
        return (
            f"{self.how}: {self.states:,} states, {self.transitions:,} transitions, depth {self.depth}, "
            f"{self.seconds:.2f} s ({rate}){end}"
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on one property, and the run that shows it where there is one."""

    name: str
    kind: Kind
    sentence: str
    verdict: Verdict
    reason: str
    explored: Explored
    counterexample: Counterexample | None = None
    witness: Counterexample | None = None
    """Of a `sometimes` that holds: a shortest run that shows it."""
    seconds: float = 0.0
    """What judging this property cost beyond the search that all share."""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.name}: {self.reason}"


@dataclass(frozen=True)
class Report:
    """All outcomes of one check of one model."""

    model: str
    outcomes: tuple[Outcome, ...]
    explored: tuple[Explored, ...]
    """One entry; two if the full graph was searched beside the symmetry-reduced one."""
    seed: int | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all."""
        return worst(outcome.verdict for outcome in self.outcomes)

    @property
    def exit_code(self) -> int:
        """0 if all hold, 2 if one is violated, else 3."""
        return self.verdict.exit_code

    @property
    def states(self) -> int:
        """States found by the first search."""
        return self.explored[0].states

    @property
    def transitions(self) -> int:
        """Transitions followed by the first search."""
        return self.explored[0].transitions

    @property
    def depth(self) -> int:
        """Depth of the first search."""
        return self.explored[0].depth

    def __getitem__(self, name: str) -> Outcome:
        """The outcome of the property of that name; KeyError if there is none."""
        for outcome in self.outcomes:
            if outcome.name == name:
                return outcome
        raise KeyError(name)

    def to_text(self) -> str:
        """The report for a terminal: what was explored, a line a property, then the counterexamples."""
        lines = [f"{self.model}: {self.verdict}", *(f"  {explored}" for explored in self.explored)]
        lines += [f"  {outcome}" for outcome in self.outcomes]
        runs = [o.counterexample.to_text() for o in self.outcomes if o.counterexample is not None]
        return "\n".join(lines) + "\n" + "".join("\n" + run for run in runs)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data."""
        return {
            "format": FORMAT,
            "model": self.model,
            "verdict": str(self.verdict),
            "exit_code": self.exit_code,
            "seed": self.seed,
            "seconds": round(self.seconds, 6),
            "explored": [_explored_to_json(explored) for explored in self.explored],
            "properties": [
                {
                    "name": o.name,
                    "kind": str(o.kind),
                    "sentence": o.sentence,
                    "verdict": str(o.verdict),
                    "reason": o.reason,
                    "seconds": round(o.seconds, 6),
                    "explored": _explored_to_json(o.explored),
                    "counterexample": None if o.counterexample is None else o.counterexample.to_json(),
                    "witness": None if o.witness is None else o.witness.to_json(),
                }
                for o in self.outcomes
            ],
        }

    def to_junit(self) -> str:
        """The report as a JUnit XML document."""
        return junit([self])


def junit(reports: list[Report]) -> str:
    """One JUnit XML document, a suite a report."""
    root = ElementTree.Element("testsuites")
    for report in reports:
        verdicts = [outcome.verdict for outcome in report.outcomes]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_xml(report.model),
            tests=str(len(verdicts)),
            failures=str(verdicts.count(Verdict.VIOLATED)),
            errors=str(verdicts.count(Verdict.NOT_ESTABLISHED)),
            time=f"{report.seconds:.3f}",
        )
        for o in report.outcomes:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=_xml(report.model),
                name=_xml(o.name),
                time=f"{o.seconds:.3f}",
            )
            if o.verdict is not Verdict.HOLDS:
                tag = "failure" if o.verdict is Verdict.VIOLATED else "error"
                told = ElementTree.SubElement(case, tag, type=str(o.verdict), message=_xml(o.reason))
                told.text = _xml(o.counterexample.to_text() if o.counterexample else o.sentence)
            ElementTree.SubElement(case, "system-out").text = _xml(str(o.explored))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _explored_to_json(explored: Explored) -> dict[str, Any]:
    return {
        "how": explored.how,
        "states": explored.states,
        "transitions": explored.transitions,
        "depth": explored.depth,
        "seconds": round(explored.seconds, 6),
        "truncated": explored.truncated,
    }


def _xml(text: str) -> str:
    """XML 1.0 has no way to write control characters, and ElementTree writes them all the same."""
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]", "\ufffd", text)
