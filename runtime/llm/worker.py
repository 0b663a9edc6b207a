"""The worker class that an executor starts once per rank.

Its life is the executor's calls, in this order: constructed with keywords, `init_device` (threads and process groups;
waits for all ranks), `load_model` (this rank's weights; waits for nobody), then per step `execute_model` (waits for
the peers that its layers need) and `sample_tokens` (waits for nobody). Two calls a step, so that an executor can have
the next step on its way while a token is still being chosen.

Only the output rank, the first tensor rank of the last stage, ever has logits; the others answer None.

`shutdown` needs no peer. There is no barrier in it and no collective, and the process group is left for the
operating system to close: destroying it would wait for peers that may be dead, stopped, or told to stop as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .errors import ModelError
from .llama import Llama
from .parallel import Groups, Layout, check_sizes
from .source import open_model
from .step import Step

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class LlamaWorker:
    """One rank of a Llama model."""

    def __init__(
        self,
        *,
        rank: int,
        local_rank: int,
        is_driver_worker: bool,
        distributed_init_method: str | None,
        shared_worker_lock: Any,
        model: str,
        tensor_parallel_size: int = 1,
        pipeline_parallel_size: int = 1,
        dtype: str = "float32",
        threads: int = 1,
        seed: int = 0,
        max_model_len: int | None = None,
    ) -> None:
        """Checks what can be checked without peers.

        `model` is what `source.open_model` takes. `threads` is the number of torch threads in this process. `seed`
        makes the weights of the model "tiny". `max_model_len` is the longest sequence in tokens (default: the
        model's context). Raises ModelError.
        """
        if dtype not in DTYPES:
            raise ModelError(f"dtype {dtype!r} is not known; it can be {' or '.join(DTYPES)}")
        if threads < 1:
            raise ModelError(f"a worker cannot run on {threads} threads")
        self.rank = rank
        self.local_rank = local_rank
        self.is_driver_worker = is_driver_worker
        self.layout = Layout(rank, tensor_parallel_size, pipeline_parallel_size)
        self._init_method = distributed_init_method
        self._lock = shared_worker_lock
        self._model, self._seed, self._max_model_len = model, seed, max_model_len
        self._dtype, self._threads = DTYPES[dtype], threads
        self._groups: Groups | None = None
        self._llama: Llama | None = None
        self._logits: torch.Tensor | None = None
        self._sampled: tuple[int, ...] = ()

    def init_device(self) -> None:
        """Sets torch's threads and makes the process groups; returns when all ranks have called it."""
        torch.set_num_threads(self._threads)
        self._groups = Groups(self.layout, self._init_method)

    def load_model(self) -> None:
        """Reads this rank's weights. Raises ModelError for a model that cannot be run or split like this."""
        if self._groups is None:
            raise RuntimeError("load_model before init_device")
        weights = open_model(self._model, self._seed)
        sizes = weights.hyperparameters
        check_sizes(sizes, self.layout.tensor_parallel, self.layout.pipeline_parallel)
        length = sizes.context if self._max_model_len is None else self._max_model_len
        if not 1 <= length <= sizes.context:
            raise ModelError(f"max_model_len is {length}; the model's context is 1 to {sizes.context} tokens")
        self._llama = Llama(weights, self._groups, self._dtype, length)

    def execute_model(self, step: Step) -> None:
        """Runs the layers on new tokens; the output rank keeps the logits for `sample_tokens`.

        Raises ValueError for a step that does not fit the caches, on every rank alike and before any exchange.
        """
        llama = self._loaded()
        llama.check(step)
        self._logits, self._sampled = None, ()
        self._logits = llama.forward(step)
        self._sampled = tuple(sequence.id for sequence in step.sequences if sequence.sample)

    def sample_tokens(
        self, grammar_output: Mapping[int, Sequence[int]] | None = None
    ) -> dict[int, int] | None:
        """The likeliest next token by sequence id, on the output rank; elsewhere None.

        Of equal logits the lowest token number wins. `grammar_output` names the tokens that are allowed next, by
        sequence id; sequences that it does not name are free.
        """
        if self.rank != self.layout.output_rank:
            return None
        if self._logits is None:
            return {}
        logits = self._logits
        if grammar_output:
            closed = torch.full_like(logits, -torch.inf)
            for row, sequence in enumerate(self._sampled):
                allowed = list(grammar_output.get(sequence, ()))
                if sequence not in grammar_output:
                    closed[row] = logits[row]
                elif allowed:
                    closed[row, allowed] = logits[row, allowed]
                else:
                    raise ValueError(f"no token is allowed next in sequence {sequence}")
            logits = closed
        # argmax returns the first of equal maxima.
        return dict(zip(self._sampled, logits.argmax(dim=-1).tolist(), strict=True))

    def logits(self) -> torch.Tensor | None:
        """The last step's float32 logits [sampled sequences, vocabulary] on the output rank; elsewhere None."""
        return self._logits

    def check_health(self) -> None:
        """Raises RuntimeError unless the model is loaded."""
        self._loaded()

    def shutdown(self) -> None:
        """Lets go of weights and caches; can be called at any time, any number of times, and waits for nobody."""
        self._llama = None
        self._logits, self._sampled = None, ()

    def _loaded(self) -> Llama:
        if self._llama is None:
            raise RuntimeError(f"rank {self.rank} has no model: load_model was not called, or shutdown was")
        return self._llama
