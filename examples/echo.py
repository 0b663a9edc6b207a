"""Your own worker, split over three processes: calls, a failure, and what comes after it."""

import os

from procession.runtime import ExecutorConfig, MultiprocExecutor, WorkerError


class Squares:
    """A worker: any class with these keywords, init_device and load_model."""

    def __init__(self, *, rank: int, **_: object) -> None:
        self.rank = rank

    def init_device(self) -> None: ...

    def load_model(self) -> None: ...

    def square(self, number: int) -> tuple[int, int]:
        if number < 0:
            raise ValueError(f"{number} is negative")
        return self.rank, number * number


if __name__ == "__main__":
    with MultiprocExecutor(ExecutorConfig(Squares, tensor_parallel_size=3)) as executor:
        print(executor.collective_rpc("square", args=(7,)))
        print(executor.collective_rpc(lambda worker: (worker.rank, os.getpid()), unique_reply_rank=2))
        futures = [executor.collective_rpc("square", args=(n,), non_block=True) for n in range(3)]
        print([future.result() for future in reversed(futures)])
        try:
            executor.collective_rpc("square", args=(-1,), timeout=5.0)
        except WorkerError as error:
            print(error)
        print(executor.collective_rpc("square", args=(3,)))
