"""The command line: find the sub-command, run it, and turn whatever happens into one exit code.

Theory of operation. `LazyGroup` lists the modules of `procession.commands` without importing them and imports
only the one that is called, so `--help` costs click alone. `main` is the one place that decides exit codes (see
`procession.exits`): click is run with `standalone_mode=False`, so its own codes (2 for usage, 1 for Ctrl-C)
never reach a shell. Any other exception becomes one message on stderr; `PROCESSION_DEBUG=1` lets the traceback
through.
"""

import ast
import difflib
import importlib
import importlib.util
import os
import pkgutil
from collections.abc import Sequence

import click

from . import __version__, commands
from .exits import Exit
from .interrupts import heard, heed


def _modules() -> dict[str, str]:
    """Command name → module name, sorted by command name."""
    names = (info.name for info in pkgutil.iter_modules(commands.__path__))
    return {n.replace("_", "-"): f"{commands.__name__}.{n}" for n in sorted(names) if not n.startswith("_")}


def _first_doc_line(module: str) -> str:
    """First line of a module's docstring, from its source; empty when it has none."""
    spec = importlib.util.find_spec(module)
    get_source = getattr(spec and spec.loader, "get_source", None)
    source = get_source(module) if get_source else None
    try:
        doc = ast.get_docstring(ast.parse(source or ""))
    except SyntaxError:
        return "(does not parse)"  # help must work, above all when a command is broken
    return doc.partition("\n")[0] if doc else ""


class LazyGroup(click.Group):
    """A click group whose commands are the modules of `procession.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_modules())

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        module = _modules().get(cmd_name)
        if module is None:
            return None
        command = getattr(importlib.import_module(module), "command", None)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module} must hold a click command named `command`, and holds {command!r}")
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        rows = [(name, _first_doc_line(module)) for name, module in _modules().items()]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = list(_modules())
        if args[0] not in names and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" There are: {', '.join(names)}."
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="procession")
def procession() -> None:
    """Run, check and draw the control protocol of a multiprocess inference executor.

    Exit codes: 0 holds or done, 2 violated, 3 not established, 64 wrong usage, 1 any other error, 130
    interrupted.
    """


def _describe(error: Exception) -> str:
    """One message for an exception nobody made a better one of: its type, unless the text stands alone."""
    text = str(error).strip()
    if isinstance(error, OSError | ImportError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: this process's) and return its exit code, an `Exit` value.

    Raises nothing but SystemExit (a command that a signal told to stop, a closed pipe), unless
    PROCESSION_DEBUG=1.
    """
    debug = os.environ.get("PROCESSION_DEBUG") == "1"
    try:
        with heard():
            outcome = procession.main(
                args=None if argv is None else list(argv), prog_name="procession", standalone_mode=False
            )
            heed()
    except click.UsageError as error:
        error.show()
        return Exit.USAGE
    except click.ClickException as error:
        error.show()
        return Exit.ERROR
    except (click.Abort, KeyboardInterrupt) as error:
        # click makes Abort of Ctrl-C and of an end of input at a prompt; only the first is an interruption.
        if isinstance(error.__cause__, EOFError):
            click.echo("procession: the input ended before an answer.", err=True)
            return Exit.ERROR
        return Exit.INTERRUPTED
    except Exception as error:  # the last frame: everything becomes one message
        if debug:
            raise
        click.echo(f"procession: {_describe(error)}", err=True)
        click.echo("(PROCESSION_DEBUG=1 shows the traceback.)", err=True)
        return Exit.ERROR
    return Exit.OK if outcome is None else int(outcome)
