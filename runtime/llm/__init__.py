"""A real language model for the executor's workers: Llama-architecture GGUF files, tensor and pipeline parallel.

`worker.LlamaWorker` is the class that an executor starts once per rank; `generate.generate` drives the executor from
the engine's side with two calls a step. Between the two travels only `step.Step`: new tokens, their positions, and
the sequences that are finished. Nothing here knows how processes are started, watched or stopped.

    engine process                          worker process, one per rank
    source -> tokenizer -> generate  ==>    worker -> llama -> shard -> gguf_file | tiny
                             (Step)                     \\-> parallel (torch.distributed, gloo)

This file imports nothing, so that a tokenizer can be had without torch.
"""
