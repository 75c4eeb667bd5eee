"""Write docs/reasons: one page a ``Reason``, and the index, from the table that defines them.

    tools/generate_reasons.py [--check] [--into FOLDER]

``--check`` writes nothing and exits 1 when a page is missing, stale or belongs to no reason.
The examples on the pages are not typed in: the code that refuses is run on a machine made up
here, and the lines are those that the command line prints.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from aliquot.ask import from_document, parse
from aliquot.cli.output.failures import failure_lines
from aliquot.injection import Client, Engine, container_command, rewrite
from aliquot.model import (
    GIB,
    MIB,
    AliquotError,
    Bytes,
    Gpu,
    GpuUuid,
    Health,
    HealthState,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Node,
    Placed,
    Policy,
    Reason,
    Share,
    Snapshot,
    Thousandths,
    Vendor,
)
from aliquot.node.explaining import refusal
from aliquot.placement import place
from aliquot.softgpu import read_profile

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "reasons"
INDEX = "README.md"

EXIT_CODES = {
    1: "it failed",
    2: "what was typed cannot be read",
    3: "not found",
    4: "no room now; later there may be",
    5: "it never fits, or is not allowed",
    6: "the agent is unreachable",
    7: "a check failed",
}


@dataclass(frozen=True)
class Example:
    situation: str
    command: str
    error: AliquotError


def card(index: int, **differing: object) -> Gpu:
    idle = Gpu(
        uuid=GpuUuid(f"GPU-{index}"),
        index=index,
        vendor=Vendor.NVIDIA,
        name="NVIDIA H100 80GB HBM3",
        pci_id=f"0000:{index:02x}:00.0",
        memory=Bytes(80 * GIB),
        memory_used=Bytes(0),
        outside_memory=Bytes(0),
        context_bytes=Bytes(500 * MIB),
        health=Health(HealthState.HEALTHY),
    )
    return replace(idle, **differing)  # type: ignore[arg-type]


BROKEN = Health(HealthState.UNHEALTHY, "XID 79, fallen off the bus")
TWO_CARDS = Snapshot(Node("a"), (card(0), card(1, health=BROKEN)))
ALICE = Lease(
    id=LeaseId("k7f3q"),
    state=LeaseState.HELD,
    ask="68GiB@60%",
    shares=(Share(GpuUuid("GPU-0"), Bytes(68 * GIB), Thousandths(600)),),
    policy=Policy.FAIR,
    isolation=Isolation.ADVISORY,
    holder=NobodyHolder(),
    user="alice",
    command="python train.py",
    created_at=0,
)
DOCKER = Engine(
    client=Client.of("docker", None),
    client_version=(26, 1),
    server_version=(26, 1),
    cdi_folders=(),
    default_runtime="runc",
    nvidia_runtimes=frozenset(),
    plain_runtime="runc",
    rootless=False,
    selinux=False,
)


def raised(action: Callable[[], object]) -> AliquotError:
    try:
        action()
    except AliquotError as error:
        return error
    raise SystemExit("an example of a refusal was not refused")


def refused(
    situation: str,
    spec: str,
    *,
    snapshot: Snapshot = TWO_CARDS,
    live: Iterable[Lease] = (),
    isolation: Isolation | None = None,
) -> Example:
    leases = list(live)
    ask = replace(parse(spec), isolation=isolation)
    result = place(ask, snapshot, [share for lease in leases for share in lease.shares])
    if isinstance(result, Placed):
        raise SystemExit(f"an example of a refusal fits: {spec}")
    option = f" --isolation {isolation.value}" if isolation else ""
    command = f"aliquot run --gpu {spec}{option} -- python train.py"
    return Example(situation, command, refusal(ask, result, snapshot, leases))


def in_container(*words: str) -> Example:
    def insert() -> object:
        command = container_command(words)
        return None if command is None else rewrite(command, engine=DOCKER, insertion=())

    line = " ".join(words)
    return Example("", f"aliquot run --gpu 10GiB -- {line}", raised(insert))


def examples() -> dict[Reason, Example]:
    """For each reason that pure code gives; the others depend on files, processes and engines."""
    two = "On a machine with two H100s, of which one is broken"
    document = "apiVersion: aliquot/v1\nkind: Ask\nspec:\n  gpus: 10GiB\n"
    made = [
        Example("", "aliquot run --gpu 10 -- python train.py", raised(lambda: parse("10"))),
        Example(
            "Where the fourth line of `ask.yaml` is `  gpus: 10GiB`",
            "aliquot plan -f ask.yaml",
            raised(lambda: from_document(document, source="ask.yaml")),
        ),
        refused(f"{two} and alice holds a share of the other", "20GiB@50%", live=[ALICE]),
        refused(two, "500GiB"),
        refused(two, "A100:20GiB"),
        refused(two, "100MiB"),
        refused(two, "10GiB", isolation=Isolation.FIRM),
        refused(
            "On a machine whose only H100 is broken",
            "10GiB",
            snapshot=Snapshot(Node("a"), (card(0, health=BROKEN),)),
        ),
        refused("On a machine without a GPU", "10GiB", snapshot=Snapshot(Node("a"))),
        in_container("docker", "ps"),
        in_container("docker", "run", "--privileged", "debian:12", "nvidia-smi"),
        Example("", "aliquot softgpu create H9000", raised(lambda: read_profile("H9000"))),
    ]
    return {example.error.reason: example for example in made}


def page(reason: Reason, example: Example | None) -> str:
    text = (
        f"<!-- Generated by tools/generate_reasons.py from src/aliquot/model/reasons.py; do not edit. -->\n\n"
        f"# `{reason.code}`: {reason.title}\n\n"
        f"Exit code {reason.exit_code}: {EXIT_CODES[reason.exit_code]}.\n\n"
        f"{reason.meaning}\n\n"
        f"**What to do:** {reason.fix}\n"
    )
    if example is None:
        return text
    situation = f"{example.situation}:\n\n" if example.situation else ""
    lines = "\n".join(failure_lines(example.error))
    return f"{text}\n## Example\n\n{situation}```console\n$ {example.command}\n{lines}\n```\n"


def index() -> str:
    rows = "\n".join(
        f"| [`{reason.code}`]({reason.code}.md) | {reason.exit_code} | {reason.title} |"
        for reason in sorted(Reason, key=lambda reason: (reason.exit_code, reason.code))
    )
    codes = "\n".join(f"- {code}: {meaning}" for code, meaning in EXIT_CODES.items())
    return (
        "<!-- Generated by tools/generate_reasons.py from src/aliquot/model/reasons.py; do not edit. -->\n\n"
        "# Why Aliquot refuses or fails\n\n"
        "Every refusal carries one of these codes: in brackets behind its sentence, and as "
        "`error.code` with `-o json`.\n\n"
        f"| code | exit code | in a few words |\n|---|---|---|\n{rows}\n\n"
        f"## Exit codes\n\n- 0: it worked\n{codes}\n\n"
        "`aliquot run` passes the exit code of the program through; "
        "125 then means that Aliquot itself failed.\n"
    )


def pages() -> dict[str, str]:
    """File name → text of all of docs/reasons."""
    shown = examples()
    return {INDEX: index()} | {f"{reason.code}.md": page(reason, shown.get(reason)) for reason in Reason}


def differences(folder: Path, wanted: dict[str, str]) -> list[str]:
    """One line for each page that is missing, stale or extra."""
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    missing = [f"missing: {name}" for name in sorted(wanted.keys() - found.keys())]
    extra = [f"extra: {name}" for name in sorted(found.keys() - wanted.keys())]
    stale = [f"stale: {name}" for name in sorted(wanted.keys() & found.keys()) if wanted[name] != found[name]]
    return missing + stale + extra


def write(folder: Path, wanted: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Write docs/reasons from the reasons' table.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page differs")
    parser.add_argument("--into", type=Path, default=PAGES, help="another folder than docs/reasons")
    options = parser.parse_args(arguments)
    os.environ["NO_COLOR"] = "1"  # the pages never depend on who runs this where
    wanted = pages()
    if not options.check:
        write(options.into, wanted)
        return 0
    found = differences(options.into, wanted)
    for line in found:
        print(line)
    if found:
        print("run `make generate`")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
