"""The actor: it counts tasks, and only a summary of them needs pandas."""

import time

import pandas as pd


class Worker:
    def __init__(self, name: str) -> None:
        self.name = name
        self.started = time.monotonic()
        self.durations: list[float] = []

    def record(self, seconds: float) -> None:
        self.durations.append(seconds)

    def status(self) -> dict[str, object]:
        return {
            "name": self.name,
            "tasks": len(self.durations),
            "up_seconds": time.monotonic() - self.started,
        }

    def summarise(self) -> dict[str, float]:
        """Count, mean, spread and quartiles of the recorded durations."""
        return pd.Series(self.durations, dtype="float64").describe().to_dict()
