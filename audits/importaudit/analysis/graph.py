"""What goes away if a module is never imported: dominators over every edge.

The graph has an edge from the module whose body was running to each module that was imported
meanwhile, loaded already or not, and one from each module to its parent package, which the
import system loads first. A module that nothing else needs is *dominated* by its importer:
every path from the root leads through it. A package goes away with its submodules, so its
exclusive cost is that of the set; a set can dominate more than its members do one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import networkx as nx

ROOT = "__main__"
EXACT = 100  # packages, largest first, whose set is walked rather than bounded from below


@dataclass(frozen=True)
class ImportGraph:
    """Modules with their own cost in nanoseconds, and who needs whom."""

    costs: Mapping[str, int]
    needs: Mapping[str, frozenset[str]]

    @classmethod
    def build(cls, costs: Mapping[str, int], edges: Iterable[tuple[str, str]]) -> ImportGraph:
        """A graph over the modules of COSTS and the root; EDGES beyond them are left out."""
        needs: dict[str, set[str]] = {name: set() for name in costs}
        needs.setdefault(ROOT, set())
        for importer, module in edges:
            if importer in needs and module in needs and importer != module:
                needs[importer].add(module)
        for module in costs:
            package = module.rpartition(".")[0]
            if package in costs:
                needs[module].add(package)
        return cls(costs, {name: frozenset(to) for name, to in needs.items()})

    def reached(self, without: Collection[str] = ()) -> set[str]:
        """The modules that are still imported when those in WITHOUT never are."""
        if ROOT in without:
            return set()
        seen, waiting = {ROOT}, [ROOT]
        while waiting:
            for module in self.needs[waiting.pop()]:
                if module not in seen and module not in without:
                    seen.add(module)
                    waiting.append(module)
        return seen

    def exclusive_of(self, modules: Collection[str]) -> int:
        """Nanoseconds that go away when none of MODULES is ever imported."""
        kept = self.reached(without=modules)
        return sum(self.costs.get(m, 0) for m in self.reached() if m not in kept)

    def exclusive(self) -> dict[str, int]:
        """Exclusive cost of each reachable module, a package with its submodules.

        Exact for modules without submodules and for the EXACT largest packages; for smaller
        packages it is what the members dominate one by one, which can be less.
        """
        result = self.dominated()
        members = self.members()
        packages = [name for name in members if len(members[name]) > 1 and name in result]
        packages.sort(key=lambda name: result[name], reverse=True)
        for package in packages[:EXACT]:
            result[package] = self.exclusive_of(members[package])
        return result

    def members(self) -> dict[str, set[str]]:
        """Each module with its submodules."""
        members: dict[str, set[str]] = {name: {name} for name in self.costs}
        for module in self.costs:
            package = module.rpartition(".")[0]
            while package:
                if package in members:
                    members[package].add(module)
                package = package.rpartition(".")[0]
        return members

    def dominated(self) -> dict[str, int]:
        """For each module, the cost of all that it or one of its submodules dominates."""
        above = self.dominators()
        total = {name: 0 for name in above if name in self.costs}
        for module in total:
            for owner in self.owners(module, above):
                if owner in total:
                    total[owner] += self.costs[module]
        return total

    def dominators(self) -> dict[str, str]:
        """The immediate dominator of each module that is reached."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_node(ROOT)
        graph.add_edges_from((a, b) for a, to in self.needs.items() for b in to)
        return dict(nx.immediate_dominators(graph, ROOT))

    @staticmethod
    def owners(module: str, above: Mapping[str, str]) -> set[str]:
        """The modules that take MODULE with them: its dominators, and the packages of those."""
        found: set[str] = set()
        step = module
        while step != ROOT:
            name = step
            while name and name not in found:
                found.add(name)
                name = name.rpartition(".")[0]
            step = above[step]
        return found
