"""Adding up what lies between the marks of a thread.

A mark is three integers: what, wall and CPU clock. *What* is a phase that the thread enters, or
BEGIN (an import begins: the phase after it is "import"), END (it ends: "probe", in the import
around it), or WAITED: the thread waited for a processor for ``wall`` nanoseconds since the last
BEGIN or END and before the next mark. That wait is shared out over the phases between the two,
in proportion to the time that each of them was off the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from importaudit.record import NOTHING, PHASES, Cost

# As in probe.clock; a test compares them.
BEGIN, END, WAITED = range(len(PHASES), len(PHASES) + 3)
IMPORT, BODY, PROBE = (PHASES.index(name) for name in ("import", "body", "probe"))

Cells = dict[str, Cost]


@dataclass
class Clock:
    """One thread: the imports that are open in it, innermost last, and its current cell."""

    open: list[Cells] = field(default_factory=list)
    phase: int = IMPORT
    wall: int = 0
    cpu: int = 0
    waited: int = 0
    off: list[tuple[Cells, str, int]] = field(default_factory=list)  # since BEGIN or END

    def replay(self, marks: Sequence[int], cells: Cells) -> int:
        """Follow MARKS, one of which begins or ends the import with CELLS.

        Returns when that was. Raises ValueError when the marks are not of such a kind.
        """
        when = 0
        for what, wall, cpu in zip(marks[::3], marks[1::3], marks[2::3], strict=True):
            if what == WAITED:
                self.waited += wall
                continue
            if not 0 <= what < WAITED:
                raise ValueError(what)
            self.close(wall, cpu)
            if what < len(PHASES):
                self.phase = what
                continue
            self.share()
            when = wall
            if what == BEGIN:
                self.begin(cells, wall, cpu, IMPORT)
            else:
                self.end(cells)
        return when

    def begin(self, cells: Cells, wall: int, cpu: int, phase: int) -> None:
        """Enter the import with CELLS."""
        self.open.append(cells)
        self.wall, self.cpu, self.phase = wall, cpu, phase

    def end(self, cells: Cells) -> None:
        """Leave the import with CELLS, and any in it that an exception has cut short."""
        while any(one is cells for one in self.open):
            self.open.pop()
        self.phase = PROBE

    def close(self, wall: int, cpu: int) -> None:
        """Add what has passed since the last mark to the current cell."""
        if self.open:
            cells, name = self.open[-1], PHASES[self.phase]
            took, ran = wall - self.wall, cpu - self.cpu
            cells[name] = cells.get(name, NOTHING) + Cost(took, ran)
            self.off.append((cells, name, max(took - ran, 0)))
        self.wall, self.cpu = wall, cpu

    def share(self) -> None:
        """Give the wait for a processor to the phases that it can have been in."""
        off, waited = self.off, self.waited
        self.off, self.waited = [], 0
        left = sum(share for _, _, share in off)
        for cells, name, share in off:
            if waited and share:
                part = waited * share // left
                cells[name] += Cost(0, 0, part)
                waited, left = waited - part, left - share
