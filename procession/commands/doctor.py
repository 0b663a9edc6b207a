"""Look at this machine: what an executor would find here, and what to do about each problem.

Theory of operation. Facts come from `procession.machine` (operating system) and `procession.runtime.amx` (processor);
this file adds what only torch can say, and prints. torch is imported here and nowhere before; when it is missing or
broken the report says so and goes on. Permission for AMX tiles is asked for in this process, which is about to end,
so asking changes nothing that lasts. Exit code 0, or 1 when a problem would keep an executor from running.
"""

import json
from dataclasses import asdict

import click

from .. import __version__
from ..exits import Exit
from ..machine import Finding, operating_system, python
from ..runtime.amx.cgroup import read_limits
from ..runtime.amx.choose import amx_sentence, choose
from ..runtime.amx.facts import CpuFacts, read_facts
from ..runtime.amx.kernel import permit
from ..runtime.amx.ran import probe


def _torch() -> tuple[CpuFacts, Finding]:
    """The processor's facts, with torch's view where it can be had, and the finding about torch itself."""
    try:
        facts = read_facts(with_torch=True)
    except Exception as error:  # noqa: BLE001 - a broken torch raises OSError, ImportError, RuntimeError, ...
        told = f"cannot be imported: {error}"
        return read_facts(), Finding("torch", None, told, problem="Run make setup, or: pip install torch")
    old = None
    if facts.torch_capabilities is None:
        old = "This torch does not tell what it sees of the processor: 2.13 or later does."
    return facts, Finding("torch", facts.torch_version, f"torch {facts.torch_version}", note=old)


def _processor(facts: CpuFacts) -> list[Finding]:
    quota = "no limit by control groups" if facts.quota_cores is None else f"limited to {facts.quota_cores:g}"
    some = facts.usable_cores < facts.logical_cores
    cores = (
        f"{facts.cores} to plan with: {facts.usable_cores} logical"
        f"{f' of {facts.logical_cores}' if some else ''} on {facts.usable_physical_cores} physical, {quota}"
    )
    mask = "no answer" if facts.xcomp_mask is None else f"mask {facts.xcomp_mask:#x}"
    answer = permit()
    advice = {
        "ENOSPC": "A thread's alternate signal stack is too small for tiles: start without faulthandler.",
        "EPERM": "A seccomp filter forbids it: let the sandbox pass arch_prctl.",
        "kernel too old": "If the processor has AMX: use Linux 5.16 or later.",
    }
    choice = choose(facts)
    return [
        Finding("processor", facts.cpu_name, f"{facts.cpu_name} ({facts.architecture})"),
        Finding("cores", facts.cores, cores),
        Finding(
            "instruction sets", list(facts.flags), ", ".join(facts.flags) or "none of those that matter here"
        ),
        Finding("AMX", choice.expects == "amx", amx_sentence(facts)),
        Finding("AMX tiles, kernel", facts.tiles, f"Linux {facts.kernel_release}: {facts.tiles} ({mask})"),
        Finding(
            "AMX tiles, permission", answer, f"asked for this process: {answer}", note=advice.get(answer)
        ),
        Finding("data type", choice.dtype, choice.reason),
    ]


def _ran(dtype: str) -> Finding:
    """What a small product in the chosen data type runs on."""
    try:
        ran = probe(dtype)
    except Exception as error:  # noqa: BLE001 - whatever a broken torch raises is a finding
        return Finding("matrix product", None, f"failed: {error}", problem="Install torch again.")
    return Finding("matrix product", ran.isa, ran.sentence)


def examine() -> list[Finding]:
    """All findings, in the order in which they are shown. Imports torch and runs one small product."""
    facts, torch = _torch()
    findings = [python(), torch, *_processor(facts)]
    if torch.problem is None:
        findings.append(_ran(choose(facts).dtype))
    return findings + operating_system(read_limits())


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(title=f"procession {__version__} on this machine", show_header=False, title_justify="left")
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for finding in findings:
        mark = "[red]✗[/] " if finding.problem else "[yellow]![/] " if finding.note else ""
        table.add_row(mark + finding.subject, escape(finding.sentence))
    console.print(table)
    for finding in findings:
        if finding.problem:
            console.print(f"[red]✗ {finding.subject}[/]: {escape(finding.problem)}", soft_wrap=True)
        elif finding.note:
            console.print(f"[yellow]! {finding.subject}[/]: {escape(finding.note)}", soft_wrap=True)
    problems = sum(finding.problem is not None for finding in findings)
    console.print("An executor can run here." if not problems else f"{problems} to put right first.")


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table; sizes in bytes.")
def command(as_json: bool) -> Exit:
    """Print the facts of this machine that decide how an executor runs on it.

    Cores, memory, AMX, the data type chosen and why, start methods, shared memory, limits; and what to do about each
    problem. Exits with 1 when a problem would keep an executor from running.
    """
    findings = examine()
    sound = all(finding.problem is None for finding in findings)
    if as_json:
        report = {
            "version": __version__,
            "sound": sound,
            "findings": [asdict(finding) for finding in findings],
        }
        click.echo(json.dumps(report, indent=2))
    else:
        _print(findings)
    return Exit.OK if sound else Exit.ERROR
