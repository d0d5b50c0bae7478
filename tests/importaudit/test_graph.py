"""Exclusive costs against the definition: delete the node and walk again."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given, settings
from hypothesis import strategies as st

from importaudit.analysis.graph import EXACT, ROOT, ImportGraph

FLAT = list("abcdefgh")
DOTTED = ["p", "p.a", "p.a.x", "p.a.y", "p.b", "q", "q.a", "q.a.x", "r", "lone.child"]

Edges = list[tuple[str, str]]


def graphs(names: list[str]) -> st.SearchStrategy[tuple[dict[str, int], Edges]]:
    """Costs and edges over some of NAMES: cycles, self-loops and unreachable modules included."""
    # Powers of two: a sum says which modules it is made of.
    costs = st.sets(st.sampled_from(names), min_size=1).map(
        lambda chosen: {name: 1 << names.index(name) for name in sorted(chosen)}
    )
    importers = st.sampled_from([ROOT, *names])
    edges = st.lists(st.tuples(importers, st.sampled_from([ROOT, *names])), max_size=30)
    return st.tuples(costs, edges)


def imported(costs: dict[str, int], edges: Edges, deleted: Collection[str] = ()) -> set[str]:
    """The modules that a walk from the root meets, without those in DELETED."""
    found: set[str] = set()
    grows = True
    while grows:
        before = len(found)
        for importer, module in edges:
            if importer == ROOT or importer in found:
                found |= {module} & set(costs) - set(deleted)
        for module in list(found):
            found |= {module.rpartition(".")[0]} & set(costs) - set(deleted)
        grows = len(found) > before
    return found


def goes_away(costs: dict[str, int], edges: Edges, deleted: Collection[str]) -> int:
    gone = imported(costs, edges) - imported(costs, edges, deleted)
    return sum(costs[module] for module in gone)


def with_submodules(name: str, costs: dict[str, int]) -> set[str]:
    return {m for m in costs if m == name or m.startswith(f"{name}.")}


@settings(deadline=None)
@given(graphs(FLAT))
def test_exclusive_is_what_goes_away_when_the_module_is_deleted(
    case: tuple[dict[str, int], Edges],
) -> None:
    costs, edges = case
    graph = ImportGraph.build(costs, edges)

    expected = {m: goes_away(costs, edges, {m}) for m in imported(costs, edges)}
    assert graph.exclusive() == expected
    assert graph.dominated() == expected


@settings(deadline=None)
@given(graphs(DOTTED))
def test_a_package_goes_away_with_its_submodules(case: tuple[dict[str, int], Edges]) -> None:
    costs, edges = case
    graph = ImportGraph.build(costs, edges)

    assert graph.exclusive() == {
        m: goes_away(costs, edges, with_submodules(m, costs)) for m in imported(costs, edges)
    }


@settings(deadline=None)
@given(graphs(DOTTED))
def test_the_bound_of_a_small_package_is_never_too_high(
    case: tuple[dict[str, int], Edges],
) -> None:
    costs, edges = case
    graph = ImportGraph.build(costs, edges)
    exclusive, bound = graph.exclusive(), graph.dominated()

    for module in exclusive:
        assert bound[module] <= exclusive[module]
        if len(with_submodules(module, costs)) == 1:
            assert bound[module] == exclusive[module]


@settings(deadline=None)
@given(graphs(DOTTED), st.sets(st.sampled_from(DOTTED)))
def test_the_exclusive_cost_of_a_set_is_what_goes_away_with_it(
    case: tuple[dict[str, int], Edges], deleted: set[str]
) -> None:
    costs, edges = case

    assert ImportGraph.build(costs, edges).exclusive_of(deleted) == goes_away(costs, edges, deleted)


def test_a_module_that_two_import_belongs_to_neither() -> None:
    edges = [(ROOT, "a"), (ROOT, "b"), ("a", "shared"), ("b", "shared")]
    graph = ImportGraph.build({"a": 1, "b": 2, "shared": 4}, edges)

    assert graph.exclusive() == {"a": 1, "b": 2, "shared": 4}
    assert graph.exclusive_of({"a", "b"}) == 7


def test_an_import_of_what_is_loaded_already_counts_as_an_edge() -> None:
    chain = [(ROOT, "a"), ("a", "b")]
    costs = {"a": 1, "b": 2}

    assert ImportGraph.build(costs, chain).exclusive()["a"] == 3
    assert ImportGraph.build(costs, [*chain, (ROOT, "b")]).exclusive()["a"] == 1


def test_all_of_a_package_is_more_than_the_sum_of_its_members() -> None:
    edges = [(ROOT, "p.a"), (ROOT, "p.b"), ("p.a", "shared"), ("p.b", "shared")]
    graph = ImportGraph.build({"p": 1, "p.a": 2, "p.b": 4, "shared": 8}, edges)

    assert graph.dominated()["p"] == 7
    assert graph.exclusive()["p"] == 15


def test_the_largest_packages_are_exact_and_the_rest_bounded() -> None:
    costs: dict[str, int] = {}
    edges: Edges = []
    for n in range(EXACT + 1):
        costs |= {f"p{n}": 1000 - n, f"p{n}.a": 0, f"p{n}.b": 0, f"shared{n}": 1}
        edges += [(ROOT, f"p{n}.a"), (ROOT, f"p{n}.b")]
        edges += [(f"p{n}.a", f"shared{n}"), (f"p{n}.b", f"shared{n}")]
    exclusive = ImportGraph.build(costs, edges).exclusive()

    assert [exclusive[f"p{n}"] for n in range(EXACT)] == [1001 - n for n in range(EXACT)]
    assert exclusive[f"p{EXACT}"] == 1000 - EXACT


def test_a_chain_longer_than_the_recursion_limit() -> None:
    names = [f"m{n}" for n in range(3000)]
    costs = dict.fromkeys(names, 1)
    edges = list(zip([ROOT, *names], names, strict=False))

    assert ImportGraph.build(costs, edges).exclusive_of({"m0"}) == 3000
    assert ImportGraph.build(costs, edges).exclusive()["m1"] == 2999
