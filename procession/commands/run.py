"""Run a language model over real worker processes, and hold the run to the checked protocol.

Theory of operation. The fork server starts first, so that it imports torch while this process reads the model's
header. Everything that can be refused (model, sizes, prompt, memory) is refused before a worker is made. Text goes to
stdout as it comes; progress and the closing table go to stderr. When the executor is down, the trace that every
process wrote is replayed on the model that `procession check` explores, and what is left on the machine is looked for.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..exits import Exit
from ..interrupts import heed

PHASES = ("spawned", "device", "weights", "queues", "ready")
WORKER = "procession.runtime.llm.worker:LlamaWorker"
PRELOAD = ("torch", "procession.runtime.worker_proc", "procession.runtime.llm.worker")


class Phases:
    """A bar a rank: how far each is on its way to READY."""

    def __init__(self, console: Console, ranks: int, quiet: bool) -> None:
        self._live = console.is_terminal and not quiet
        self._quiet = quiet
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[phase]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not self._live,
        )
        self._tasks: list[TaskID] = [
            self._progress.add_task(f"rank {rank}", total=len(PHASES), phase="", start=True)
            for rank in range(ranks)
        ]

    def __enter__(self) -> Phases:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, rank: int, phase: str, seconds: float) -> None:
        """A rank came to a phase; called from the supervisor's thread."""
        if phase not in PHASES or self._quiet:
            return
        if self._live:
            self._progress.update(self._tasks[rank], completed=PHASES.index(phase) + 1, phase=phase)
            if phase == PHASES[-1]:
                self._progress.stop_task(self._tasks[rank])
        else:
            self._console.print(f"rank {rank}: {phase} after {seconds:.2f} s")


@click.command
@click.option(
    "--model", default="smollm2", show_default=True, help="'smollm2', 'tiny', or the path of a GGUF file."
)
@click.option("--prompt", default=None, help="What to ask; the default asks for a word about Paris.")
@click.option(
    "--prompt-file",
    type=click.Path(path_type=Path),
    default=None,
    help="Read the prompt from a file ('-': stdin).",
)
@click.option(
    "--tensor-parallel-size", "-tp", type=click.IntRange(1), default=None, help="Ranks a stage is split over."
)
@click.option("--pipeline-parallel-size", "-pp", type=click.IntRange(1), default=None, help="Stages.")
@click.option(
    "--max-tokens", type=click.IntRange(1), default=64, show_default=True, help="Tokens to generate."
)
@click.option(
    "--start-method",
    type=click.Choice(["forkserver", "spawn", "fork"]),
    default="forkserver",
    show_default=True,
)
@click.option(
    "--dtype", type=click.Choice(["auto", "float32", "bfloat16"]), default="auto", show_default=True
)
@click.option(
    "--trace", type=click.Path(path_type=Path), default=None, help="Keep the recorded trace in a file."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, and nothing else, on stdout.")
def command(
    model: str,
    prompt: str | None,
    prompt_file: Path | None,
    tensor_parallel_size: int | None,
    pipeline_parallel_size: int | None,
    max_tokens: int,
    start_method: str,
    dtype: str,
    trace: Path | None,
    as_json: bool,
) -> int:
    """Generate text with a model split over worker processes, and validate the run.

    Without sizes, the model is split as far as it goes sensibly on a small machine: TP 3 x PP 2 for smollm2, TP 2 x
    PP 2 for tiny, one rank for a file of yours.
    """
    console = Console(stderr=True, highlight=False)
    text = _prompt(prompt, prompt_file)
    _check_target(trace)
    if start_method == "forkserver":
        from ..runtime.fork_server import warm

        warm(PRELOAD)
    from ..runtime.leftovers import left_behind, snapshot

    before = snapshot()
    began = time.monotonic()
    plan = _plan(model, text, tensor_parallel_size, pipeline_parallel_size, max_tokens, dtype, start_method)
    facts: dict[str, Any] = {"model": plan.name, "tp": plan.tp, "pp": plan.pp, "start_method": start_method}
    facts |= _generate(plan, start_method, began, console, as_json)
    recorder = facts.pop("recorder")
    if trace is not None:
        recorder.save(trace)
    verdicts = _verdicts(recorder.lines())
    facts |= verdicts | {"left_behind": left_behind(before)}
    if as_json:
        click.echo(json.dumps(facts))
    else:
        console.print(_table(facts))
    held = facts["verdict"] == "holds" and facts["trace_verdict"] == "accepted"
    if not held:
        return (
            Exit.NOT_ESTABLISHED
            if "not established" in (facts["verdict"], facts["trace_verdict"])
            else Exit.VIOLATED
        )
    return Exit.OK if not facts["left_behind"] else Exit.ERROR


class _Plan:
    """A run that passed every check that can be made before a process is started."""

    def __init__(self, model: str, tp: int, pp: int, max_tokens: int, dtype: str, why: str) -> None:
        self.model, self.tp, self.pp, self.max_tokens, self.dtype, self.why = (
            model,
            tp,
            pp,
            max_tokens,
            dtype,
            why,
        )
        self.name = model
        self.tokenizer: Any = None
        self.tokens: list[int] = []
        self.length = 0


def _prompt(prompt: str | None, prompt_file: Path | None) -> str:
    if prompt is not None and prompt_file is not None:
        raise click.UsageError("--prompt and --prompt-file exclude each other.")
    if prompt_file is not None:
        try:
            data = sys.stdin.read() if str(prompt_file) == "-" else prompt_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.ClickException(f"the prompt cannot be read from {prompt_file}: {error}") from error
        prompt = data.strip()
    if prompt is None:
        prompt = "Tell me in two sentences why Paris is famous."
    if not prompt.strip():
        raise click.UsageError("The prompt is empty.")
    return prompt


def _check_target(trace: Path | None) -> None:
    if trace is not None and not trace.absolute().parent.is_dir():
        raise click.ClickException(
            f"the trace cannot be written: there is no folder {trace.absolute().parent}"
        )


def _plan(
    model: str, text: str, tp: int | None, pp: int | None, max_tokens: int, dtype: str, start_method: str
) -> _Plan:
    from ..runtime.amx.choose import choose
    from ..runtime.amx.facts import read_facts
    from ..runtime.llm.errors import ModelError
    from ..runtime.llm.generate import check_memory, check_prompt
    from ..runtime.llm.parallel import check_sizes
    from ..runtime.llm.source import open_model

    heed()
    default = {"smollm2": (3, 2), "tiny": (2, 2)}.get(model, (1, 1))
    if tp is None and pp is not None:
        tp = 1
    if pp is None and tp is not None:
        pp = 1
    tp, pp = tp or default[0], pp or default[1]
    if dtype == "auto":
        choice = choose(read_facts())
        dtype, why = choice.dtype, choice.reason.rstrip(".")
    else:
        why = f"{dtype}, as asked for"
    plan = _Plan(model, tp, pp, max_tokens, dtype, why)
    try:
        weights = open_model(model)
        sizes = weights.hyperparameters
        check_sizes(sizes, tp, pp)
        plan.tokenizer = weights.tokenizer()
        plan.tokens = plan.tokenizer.prompt(text)
        check_prompt(plan.tokens, max_tokens, sizes.context)
        plan.length = len(plan.tokens) + max_tokens
        check_memory(sizes, tp, pp, dtype, tokens=plan.length, start_method=start_method)
    except ModelError as error:
        raise click.ClickException(str(error)) from error
    return plan


def _generate(
    plan: _Plan, start_method: Any, began: float, console: Console, as_json: bool
) -> dict[str, Any]:
    from ..runtime import ExecutorConfig, ExecutorError, MultiprocExecutor, Recorder
    from ..runtime.llm.generate import generate

    heed()
    recorder = Recorder()
    ranks = plan.tp * plan.pp
    with Phases(console, ranks, as_json) as phases:
        config = ExecutorConfig(
            WORKER,
            worker_kwargs={
                "model": plan.model,
                "tensor_parallel_size": plan.tp,
                "pipeline_parallel_size": plan.pp,
                "dtype": plan.dtype,
                "max_model_len": plan.length,
            },
            tensor_parallel_size=plan.tp,
            pipeline_parallel_size=plan.pp,
            start_method=start_method,
            preload=PRELOAD,
            recorder=recorder,
            on_phase=phases,
        )
        try:
            executor = MultiprocExecutor(config)
        except ExecutorError as error:
            raise click.ClickException(str(error)) from error
    try:
        with executor:
            up = time.monotonic()
            ran = executor.collective_rpc(_what_ran, args=(plan.dtype,))
            first = last = time.monotonic()
            detokenizer = plan.tokenizer.detokenizer()
            pieces, times = [], []
            last = time.monotonic()
            for token in generate(
                executor, plan.tokenizer, plan.tokens, plan.max_tokens, context=plan.length
            ):
                now = time.monotonic()
                times.append(now - last)
                last = now
                pieces.append(_show(detokenizer.push(token), as_json))
            pieces.append(_show(detokenizer.finish(), as_json))
            if not as_json:
                click.echo()
    except ExecutorError as error:
        if not as_json:
            click.echo()
        raise click.ClickException(str(error)) from error
    decode = sum(times[1:])
    return {
        "recorder": recorder,
        "text": "".join(pieces),
        "prompt_tokens": len(plan.tokens),
        "tokens": len(times),
        "seconds_to_ready": round(up - began, 3),
        "seconds_to_first_token": round(times[0], 3) if times else None,
        "tokens_per_second": round((len(times) - 1) / decode, 2) if decode > 0 else None,
        "dtype": plan.dtype,
        "dtype_reason": plan.why,
        "instruction_sets": sorted(set(ran)),
        "first_call_seconds": round(first - up, 3),
    }


def _show(piece: str, as_json: bool) -> str:
    if piece and not as_json:
        sys.stdout.write(piece)
        sys.stdout.flush()
    return piece


def _what_ran(_worker: object, dtype: str) -> str:
    from procession.runtime.amx.ran import probe

    return probe(dtype).sentence


def _verdicts(lines: list[str]) -> dict[str, Any]:
    from ..specs.summary import summary
    from ..specs.trace import validate

    protocol = summary()
    verdict = validate(lines)
    return {
        "protocol": protocol.model,
        "states": protocol.states,
        "verdict": protocol.verdict,
        "trace_lines": len(lines) - 1,
        "trace_verdict": "accepted" if verdict.accepted else "refused",
        "trace_refusal": None if verdict.accepted else str(verdict),
    }


def _table(facts: dict[str, Any]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    rate = "–" if facts["tokens_per_second"] is None else f"{facts['tokens_per_second']:.1f} tokens/s"
    left = facts["left_behind"]
    ranks = facts["tp"] * facts["pp"]
    ready = f"ready after {facts['seconds_to_ready']:.1f} s"
    rows = {
        "protocol": f"{facts['protocol']}: {facts['states']:,} states explored",
        "verdict": facts["verdict"],
        "trace": f"{facts['trace_verdict']} ({facts['trace_lines']:,} steps of {ranks + 1} processes)",
        "ranks": f"TP {facts['tp']} x PP {facts['pp']} by {facts['start_method']}, {ready}",
        "speed": f"{rate} ({facts['tokens']} tokens, first after {facts['seconds_to_first_token']} s)",
        "arithmetic": facts["dtype_reason"],
        "what ran": "; ".join(facts["instruction_sets"]),
        "left behind": "nothing" if not left else "; ".join(left),
    }
    for name, value in rows.items():
        table.add_row(name, value)
    if facts["trace_refusal"]:
        table.add_row("refusal", facts["trace_refusal"])
    return table
