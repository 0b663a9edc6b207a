"""Hold a recorded trace against the checked model: accepted, or the first line that cannot be.

Theory of operation. The trace of `procession run --trace FILE`, or of any executor with a recorder, is replayed on the
composed model, line by line. A refusal says how far the trace could be followed, what the line says, and what would
have been allowed there, on stdout like the acceptance: both are answers. What is no file is an error, on stderr.
The JSON of `procession check` is taken, too: its counterexamples are replayed on the models they name.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..exits import Exit
from ..replays import read


def read_lines(path: Path) -> list[str]:
    """The lines of a text file. Raises click.ClickException with one clear message if there are none to be had."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise click.ClickException(f"there is no file {str(path)!r}.") from None
    except IsADirectoryError:
        raise click.ClickException(f"{str(path)!r} is a folder, not a trace.") from None
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{str(path)!r} is no text (byte {error.start}): not a trace.") from None
    except OSError as error:
        raise click.ClickException(f"{str(path)!r} cannot be read: {error.strerror}.") from None


@click.command("validate")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
def command(trace: Path, as_json: bool) -> Exit:
    """Validate TRACE, a recorded run (NDJSON), against the model; or the
    counterexamples in what `procession check --json` printed.

    Exits with 0 when it is accepted, 2 when it is refused.
    """
    from ..specs.trace import validate

    lines = read_lines(trace)
    replays = read(lines)
    if replays is not None:
        if as_json:
            click.echo(json.dumps([one.to_json() for one in replays], indent=2, ensure_ascii=False))
        else:
            click.echo("\n".join(map(str, replays)))
        return Exit.VIOLATED if any(one.refused for one in replays) else Exit.OK
    verdict = validate(lines)
    click.echo(json.dumps(verdict.to_json(), indent=2, ensure_ascii=False) if as_json else str(verdict))
    return Exit.OK if verdict.accepted else Exit.VIOLATED
