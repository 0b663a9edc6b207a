"""Exit codes: what the command line promises to scripts.

Theory of operation. A checker has three verdicts, so a shell needs three codes for them, apart from "the
program failed" and "you called it wrongly". Usage has the BSD code 64, because 2, which most parsers use for
it, is the verdict *violated* here: a misspelt option must never look like a counterexample. A sub-command
returns one of these from its function (or None for OK); only `procession.cli.main` makes it a process exit.
"""

from enum import IntEnum


class Exit(IntEnum):
    """What a finished command tells its shell."""

    OK = 0
    """It holds, or the work is done."""
    ERROR = 1
    """Something failed that is neither a verdict nor wrong usage; one message on stderr says what."""
    VIOLATED = 2
    """A property, or a trace, was refuted."""
    NOT_ESTABLISHED = 3
    """Neither proved nor refuted: the search was cut short."""
    USAGE = 64
    """Unknown command, bad option or argument (EX_USAGE)."""
    INTERRUPTED = 130
    """Ctrl-C (128 + SIGINT)."""
