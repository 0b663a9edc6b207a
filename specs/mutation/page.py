"""The page of the docs about mutants: a whole campaign, as Markdown.

Theory of operation. It says nothing that depends on the machine or the hour, so the same tables give the same page. A
whole campaign takes minutes: a test compares only what is quick to count (how many defects each table has, what lint
refuses, the reasons) with what is committed.
"""

from __future__ import annotations

from collections.abc import Iterator

from .campaign import Campaign
from .counts import Counts, by_property, by_reason, by_table, in_all
from .fate import Outcome

_HEAD = """<!-- Written by `procession mutate --markdown`; do not edit. -->

# Mutants

Every small defect of every shipped table, of the couplings between them, and of the facts that several of them learn,
is made and tried: a row is dropped or leads elsewhere, an effect is missing or two are in the other order, a guard
(the comparison of calls, epochs or ranks) holds always, never, or means its opposite; a coupling row is dropped,
watches less, asks for some instead of every one, or brings about something else; two neighbours change places.

- *refused by lint*: such a table cannot be imported.
- *killed*: the checker finds a run that violates a property.
- *equivalent*: shown by computation. In every reachable state of every model that is tried, at one rank or two, the
  broken protocol has the same successors by the same table steps, and each changed row did act there. At most the order
  of the steps within one action differs; an action is atomic in the models.
- *survived*: nothing convicts it, and that it changes nothing was not shown, so a human says why it is left. One
  without a reason fails the campaign, and so does a reason for one that does not survive.
- The share is what a property killed, of what lint lets pass and is not equivalent.

`procession mutate` does it all again; `procession mutate NAME --all` lists the defects of one table and what killed
each.
"""


def page(campaign: Campaign) -> str:
    """The page of a whole campaign."""
    return "\n".join(_lines(campaign)) + "\n"


def _lines(campaign: Campaign) -> Iterator[str]:
    yield _HEAD
    yield "| table | defects | refused by lint | killed | equivalent | survived, explained | unexplained | share |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for counts in (*by_table(campaign), in_all(campaign)):
        yield row(counts)
    yield "\n## Which property kills\n"
    yield "One defect is counted once, for the property with the shortest run of those that the first model violates.\n"
    yield "| property | defects |"
    yield "| --- | --- |"
    for name, many in by_property(campaign):
        yield f"| {name} | {many} |"
    yield "\n## Survivors, and why\n"
    for why, names in by_reason(campaign):
        yield f"{why}\n"
        yield from (f"- `{name}`" for name in names)
        yield ""
    yield "## Equivalent"
    for shown in dict.fromkeys(one.shown for one in campaign.those(Outcome.EQUIVALENT)):
        yield f"\nEquivalent: {shown}.\n"
        yield from (f"- `{one.defect}`" for one in campaign.those(Outcome.EQUIVALENT) if one.shown == shown)


def row(counts: Counts) -> str:
    """One line of the table."""
    share = "" if counts.share is None else f"{counts.share:.1%}"
    left = counts.unexplained + counts.undecided
    return (
        f"| {counts.where} | {counts.defects} | {counts.lint} | {counts.killed} | {counts.equivalent} "
        f"| {counts.explained} | {left} | {share} |"
    )
