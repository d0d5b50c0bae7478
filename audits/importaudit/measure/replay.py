"""Adding up what lies between the marks of a thread.

A mark says what the thread does from then on: a phase that it enters, or BEGIN (an import begins,
with the search for its module), an end of an import (the thread is back in the phase in which
that began), or WAITED: the thread waited for a processor for ``wall`` nanoseconds since the last
beginning or end and before the next mark. That wait is shared out over the phases between the
two, in proportion to the time that each of them was off the processor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from importaudit.record import NOTHING, PHASES, Cost

# As in probe.clock; a test compares them.
IMPORT, FIND, READ, UNMARSHAL, COMPILE, DLOPEN, GC, BODY, PROBE = range(1, len(PHASES) + 1)
BEGIN, WAITED, RECORD, LOADED, PRESENT, FAILED, ABANDONED = range(10, 17)
OUTCOMES = {LOADED: "loaded", PRESENT: "present", FAILED: "failed", ABANDONED: "abandoned"}


@dataclass
class Costs:
    """What one import has cost so far, and how often it opened a file or compiled a source."""

    phases: dict[str, Cost] = field(default_factory=dict)
    opened: int = 0
    compiled: int = 0


@dataclass
class Clock:
    """One thread: the imports that are open in it, innermost last, and its current phase."""

    open: list[tuple[int, Costs, int]] = field(default_factory=list)  # the phase around it, last
    phase: int = BODY
    wall: int = 0
    cpu: int = 0
    waited: int = 0
    off: list[tuple[Costs, str, int]] = field(default_factory=list)  # since the last begin or end

    def begin(self, number: int, costs: Costs, wall: int, cpu: int, phase: int = FIND) -> None:
        """The import NUMBER begins, in PHASE."""
        self.close(wall, cpu)
        self.share()
        self.open.append((number, costs, self.phase))
        self.phase = phase

    def enter(self, phase: int, wall: int, cpu: int) -> None:
        """The thread enters PHASE; it does not enter again what a collection interrupted."""
        self.close(wall, cpu)
        if self.open and self.phase != GC:
            costs = self.open[-1][1]
            # Reading twice on end: what the first wanted is not there, or was refused.
            costs.opened += phase in {READ, DLOPEN} and phase != self.phase
            costs.compiled += phase == COMPILE
        self.phase = phase

    def end(self, number: int, wall: int, cpu: int) -> None:
        """The import NUMBER ends, and any in it that an exception has cut short.

        Raises ValueError when it is not open.
        """
        place = next((n for n, one in enumerate(self.open) if one[0] == number), None)
        if place is None:
            raise ValueError(number)
        self.close(wall, cpu)
        self.share()
        self.phase = self.open[place][2]
        del self.open[place:]

    def close(self, wall: int, cpu: int) -> None:
        """Add what has passed since the last mark to the current cell."""
        if self.open:
            costs, name = self.open[-1][1], PHASES[self.phase - 1]
            took, ran = wall - self.wall, cpu - self.cpu
            costs.phases[name] = costs.phases.get(name, NOTHING) + Cost(took, ran)
            self.off.append((costs, name, max(took - ran, 0)))
        self.wall, self.cpu = wall, cpu

    def share(self) -> None:
        """Give the wait for a processor to the phases that it can have been in."""
        off, waited = self.off, self.waited
        self.off, self.waited = [], 0
        left = sum(share for _, _, share in off)
        for costs, name, share in off:
            if waited and share:
                part = waited * share // left
                costs.phases[name] += Cost(0, 0, part)
                waited, left = waited - part, left - share
