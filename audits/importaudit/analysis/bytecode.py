"""Would this interpreter load bytecode for a source? From the bytes of its header alone.

The rule is ``SourceLoader.get_code`` of CPython's Lib/importlib/_bootstrap_external.py, with
``_classify_pyc`` and ``_validate_*`` there, the format that of PEP 552 and the names those of
PEP 3147 and PEP 488. Nothing here touches a file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from importaudit.analysis.distributions import UNKNOWN, Distributions
from importaudit.files import LOCAL, Files
from importaudit.record import Bytecode, BytecodeRow, Facts, Judged, Root, Verdict, text

HEAD = 17  # bytes of a file that tell: the header, and the type of the object that follows
CODE = b"\xe3c"  # marshal's TYPE_CODE, with and without FLAG_REF
# Bytes of bytecode for a byte of source, where an environment has too little to tell:
# sglang's environment and the standard library of 3.11, 24,000 sources.
USUAL_RATIO = 1.29
ENOUGH = 1_000_000  # bytes of source from which an environment's own ratio is used

# Verdicts that say nothing against the environment: nothing could be done about them.
NOBODYS_FAULT = (Verdict.LOADABLE, Verdict.NOT_COMPILABLE)


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and its reason, in a word or two."""

    verdict: Verdict
    reason: str = ""
    check_hash: bool = False  # loadable if the source has the hash that the header names


LOADABLE = Decision(Verdict.LOADABLE)
UNCHECKED = Decision(Verdict.LOADABLE, "unchecked hash")
CHECKED = Decision(Verdict.LOADABLE, "checked hash", check_hash=True)
HASH = Decision(Verdict.STALE, "hash")
MISSING = Decision(Verdict.MISSING)
DAMAGED = Decision(Verdict.DAMAGED, "no code object after the header")


@dataclass(frozen=True)
class Rules:
    """The facts of an interpreter, in the shape that deciding needs them."""

    magic: bytes
    suffix: str  # of a bytecode file, after the name of the module; "" where none is looked for
    prefix: str | None
    check_hash: str
    plain: bytes = field(init=False)  # magic number, and the flags of a timestamp

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", self.magic + bytes(4))


def rules_of(facts: Facts) -> Rules:
    """The rules that follow from FACTS."""
    level = f".opt-{facts.optimize}" if facts.optimize else ""
    suffix = f".{facts.cache_tag}{level}.pyc" if facts.cache_tag else ""
    # An empty prefix is none: sys.pycache_prefix is None then.
    return Rules(bytes.fromhex(facts.magic), suffix, facts.pycache_prefix, facts.check_hash)


def cache_folder(folder: str, rules: Rules) -> str:
    """Where the bytecode of the sources in FOLDER, an absolute path, is looked for.

    FOLDER is "" for the root folder, which importlib takes for the current one (_path_split).
    """
    if rules.prefix is None:
        return f"{folder}/__pycache__" if folder else "__pycache__"
    folder = folder or os.getcwd()  # noqa: PTH109
    # Joined as importlib's _path_join does: with one separator, nothing else normalised.
    return f"{rules.prefix.rstrip('/')}/{folder.lstrip('/')}".rstrip("/")


def decide(head: bytes, mtime: int, size: int, rules: Rules) -> Decision:
    """The verdict for a source of MTIME seconds and SIZE bytes whose bytecode begins with HEAD."""
    stamp = (mtime & 0xFFFFFFFF).to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
    if head[:16] == rules.plain + stamp:
        return LOADABLE if head[16:HEAD] in CODE and len(head) > 16 else DAMAGED
    refused = classify(head, rules)
    if refused is not None:
        return refused
    if not head[4] & 1:
        if head[8:16] == stamp:  # with the flag "check the source" alone, which means nothing
            return after_header(head, LOADABLE)
        reason = "mtime" if head[8:12] != stamp[:4] else "size"
        return Decision(Verdict.STALE, reason)
    checked = bool(head[4] & 2) or rules.check_hash == "always"
    if rules.check_hash == "never" or not checked:
        return after_header(head, UNCHECKED)
    return after_header(head, CHECKED)


def decide_sourceless(head: bytes, rules: Rules) -> Decision:
    """The verdict for bytecode without a source (SourcelessFileLoader): nothing to compare."""
    refused = classify(head, rules)
    if refused is not None:
        return Decision(refused.verdict, f"{refused.reason}, and no source: the import fails")
    return after_header(head, Decision(Verdict.LOADABLE, "without source"))


def classify(head: bytes, rules: Rules) -> Decision | None:
    """Why the header is refused whatever the source is like; None where it is not."""
    if head[:4] != rules.magic:
        return Decision(Verdict.WRONG_MAGIC, f"magic {head[:4].hex()}" if head else "empty file")
    if len(head) < 16:
        return Decision(Verdict.STALE, "header cut short")
    if int.from_bytes(head[4:8], "little") & ~3:
        return Decision(Verdict.STALE, "unknown flags")
    return None


def after_header(head: bytes, accepted: Decision) -> Decision:
    """ACCEPTED, unless no code object can follow: importlib then raises, it does not recompile.

    A body that is cut short further on shows only when it is unmarshalled (--verify). Where the
    hash is still to be checked, a wrong one comes first: then importlib never sees the body.
    """
    if accepted.verdict is Verdict.STALE or (len(head) > 16 and head[16:HEAD] in CODE):
        return accepted
    if accepted.check_hash:
        return Decision(Verdict.DAMAGED, DAMAGED.reason, check_hash=True)
    return DAMAGED


def absent(stem: str, present: Iterable[str], rules: Rules) -> Decision:
    """The verdict where the right file is not there, by the names PRESENT in its folder."""
    start = f"{stem}."
    tags = sorted(
        name[len(start) : -4]
        for name in present
        if name.startswith(start) and name.endswith(".pyc") and name != stem + rules.suffix
    )
    # "a.b.cpython-311.pyc" is the bytecode of "a.b.py", which no import finds.
    tags = [tag for tag in tags if tag.count(".") <= 1]
    return Decision(Verdict.OTHER_TAG, ", ".join(tags)) if tags else MISSING


# --- sums ----------------------------------------------------------------------------------


def ratio_of(judged: Iterable[Judged]) -> float:
    """Bytes of bytecode for a byte of source: from what is loadable, if that is enough."""
    source = bytecode = 0
    for one in judged:
        if one.verdict is Verdict.LOADABLE and one.size:
            source += one.size
            bytecode += one.bytecode
    return bytecode / source if source >= ENOUGH else USUAL_RATIO


def summarise(found: Iterable[tuple[Root, list[Judged]]], owners: Distributions) -> Bytecode:
    """The sums of what was FOUND below each root, by the distributions of OWNERS.

    A folder is without usable bytecode when none of its sources, leaving out those that do not
    compile, is loadable. What baking adds is estimated by the size of the sources; a file that is
    there and is replaced (stale, wrong magic, damaged) adds nothing. Fills in the counts of the
    roots.
    """
    pairs = list(found)
    ratio = ratio_of(one for _, judged in pairs for one in judged)
    usable: dict[str, bool] = {}
    rows: dict[tuple[str, str], BytecodeRow] = {}
    total: Counter[Verdict] = Counter()
    for root, judged in pairs:
        for one in judged:
            row = row_of(one.source, root, owners, rows)
            row.sources += 1
            verdict = one.verdict
            row.verdicts[verdict] = row.verdicts.get(verdict, 0) + 1
            total[verdict] += 1
            if verdict is not Verdict.NOT_COMPILABLE:
                folder = one.source.rpartition("/")[0]
                usable[folder] = verdict is Verdict.LOADABLE or usable.get(folder, False)
            if verdict not in NOBODYS_FAULT and not one.bytecode:
                row.adds += round(one.size * ratio)
        root.sources = len(judged)
        root.unusable = sum(one.verdict not in NOBODYS_FAULT for one in judged)
    return Bytecode(
        folders=len(usable),
        without=sum(not good for good in usable.values()),
        verdicts={verdict: total[verdict] for verdict in Verdict if total[verdict]},
        rows=sorted(rows.values(), key=badness),
        adds=sum(row.adds for row in rows.values()),
    )


def badness(row: BytecodeRow) -> tuple[int, int, str]:
    """For sorting rows, worst first: by sources without usable bytecode, then by bytes."""
    fine = sum(row.verdicts.get(verdict, 0) for verdict in NOBODYS_FAULT)
    return fine - row.sources, -row.adds, row.name


def row_of(
    source: str, root: Root, owners: Distributions, rows: dict[tuple[str, str], BytecodeRow]
) -> BytecodeRow:
    """The row that SOURCE is counted in."""
    name = owners.of_file(source)
    if name == UNKNOWN and root.kind != "site-packages":
        name = text(root.path)
    kind = root.kind
    if kind == "path" and name in owners.editable.values():
        kind = "editable"
    row = rows.get((name, kind))
    if row is None:
        row = rows[name, kind] = BytecodeRow(name, kind, 0, {})
    return row


def stdlib_folders(facts: Facts, files: Files = LOCAL) -> list[str]:
    """Where the standard library of an interpreter is, links resolved and not."""
    version = ".".join(facts.version.split(".")[:2])
    folders = [
        f"{facts.base_prefix}/{name}/python{version}"
        for name in dict.fromkeys(["lib", facts.platlibdir])
    ]
    return list(dict.fromkeys([*folders, *map(files.real, folders)]))
