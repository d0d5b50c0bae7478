"""What an audit is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """What is to run: modules to import, a string of code, or a script with arguments."""

    modules: tuple[str, ...] = ()
    code: str | None = None
    script: Path | None = None
    argv: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The target as the user would write it."""
        if self.script is not None:
            return " ".join([str(self.script), *self.argv])
        return self.code if self.code is not None else " ".join(self.modules)

    @property
    def statement(self) -> str:
        """What follows the probe on its line."""
        if self.script is not None:  # tracebacks name it in full, as under plain Python
            file = str(self.script.absolute())
            read = f'(lambda f:(f.read(),f.close())[0])(open({file!r},"rb"))'
            return f'exec(compile({read},{file!r},"exec"))'
        if self.code is not None:
            return f'exec(compile({self.code!r},"<string>","exec"))'
        return "import " + ", ".join(self.modules)


@dataclass(frozen=True)
class Plan:
    """What an audit will do."""

    python: Path
    target: Target
    runs: int = 3
    timeout: float | None = None  # seconds, for each run

    @property
    def kinds(self) -> list[str]:
        """The runs in order. The detail run warms the caches up, and shows most of a failure."""
        return ["detail"] + ["timing"] * self.runs
