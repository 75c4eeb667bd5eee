"""What a governed process says of itself in the ledger."""

import struct
import tomllib

from tests.native.governor.shares import ROOT, UUIDS, ShareOnDisk

from aliquot.enforcement import abi, build_of
from aliquot.model import MIB, Attestation


def attested(share: ShareOnDisk) -> list[Attestation | None]:
    return [slot.attestation for slot in share.ledger().slots if slot.alive]


def test_a_process_says_which_governor_it_runs_and_what_that_holds(share: ShareOnDisk) -> None:
    process = share.start("begin()\nsay(1)\ninput()\nalloc(1)\nsay(2)\ninput()")
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    build = build_of(share.cuda)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert build is not None
    assert len(build) == 16
    first = Attestation(build=build, version=version, memory=True, compute=True, limits_seen=0)
    assert attested(share) == [first]

    share.change({UUIDS[0]: 50 * MIB})
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    (now,) = attested(share)
    assert now is not None
    assert (
        now.limits_seen == struct.unpack_from("<I", share.limits.read_bytes(), abi.Limits.SEQUENCE.offset)[0]
    )
    assert now.limits_seen == 2
    process.communicate("\n", timeout=20)
    assert attested(share) == []


def test_the_next_tenant_of_a_slot_says_it_anew_and_a_look_through_nvml_says_nothing(
    share: ShareOnDisk,
) -> None:
    share.run("begin()\nsay(1)")
    left = share.ledger_path.read_bytes()
    share.run("nvml_library().nvmlInit_v2()\nsay(1)")
    assert share.ledger_path.read_bytes() == left
    base = abi.Ledger.SLOTS.offset
    with share.ledger_path.open("r+b") as file:
        file.seek(base + abi.Slot.GOVERNOR_BUILD.offset)
        file.write(bytes(8))
    process = share.start("begin()\nsay(1)\ninput()")
    assert process.stdout is not None
    process.stdout.readline()
    (said,) = attested(share)
    assert said is not None
    assert said.build == build_of(share.cuda)
    process.communicate("\n", timeout=20)


def test_the_build_is_the_one_that_binutils_reads(share: ShareOnDisk) -> None:
    content = share.cuda.read_bytes()
    build = build_of(share.cuda)
    assert build is not None
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes.fromhex(build)
    assert content.count(note) == 1
