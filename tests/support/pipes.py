"""Named pipes that are fed slowly."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread


@contextmanager
def slow_pipe(path: Path, content: bytes, delay: float) -> Iterator[None]:
    """A pipe at PATH whose reader gets CONTENT DELAY seconds after opening it."""
    os.mkfifo(path)
    feeder = Thread(target=feed, args=(path, content, delay), daemon=True)
    feeder.start()
    try:
        yield
    finally:
        # Where nobody has read, the feeder still waits for somebody to open the other end.
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        feeder.join()
        path.unlink()


def feed(path: Path, content: bytes, delay: float) -> None:
    try:
        with path.open("wb", buffering=0) as pipe:
            time.sleep(delay)
            pipe.write(content)
    except BrokenPipeError:
        pass
