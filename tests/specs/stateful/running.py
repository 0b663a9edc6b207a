"""Run a whole program."""

from __future__ import annotations

from procession.specs.stateful import Adapter, Driver, parse


def run(program: str, adapter: Adapter) -> None:
    """Every step, and the end. Raises `Finding`."""
    driver = Driver(adapter)
    try:
        for step in parse(program):
            driver.do(step)
    except BaseException:
        driver.abandon()
        raise
    driver.finish()
