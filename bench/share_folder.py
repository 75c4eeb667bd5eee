"""A share's folder, made by hand: the governor in its ``lib``, and what it reads and writes."""

from collections.abc import Mapping
from pathlib import Path

from aliquot.enforcement import create_ledger, create_turns, governor_folder, write_limits
from aliquot.model import Gpu, GpuUuid, Isolation, Lease, LeaseId, LeaseState, NobodyHolder, Policy, Share


def make_share(share: Path, part: Share, *, gpus: Mapping[GpuUuid, Gpu]) -> None:
    """``share``: the folder, whose ``driver`` the caller fills."""
    for name in ("driver", "lib", "turns"):
        (share / name).mkdir(parents=True)
    lease = Lease(
        id=LeaseId("bench"),
        state=LeaseState.HELD,
        ask=f"{part.memory}B@{part.compute}m",
        shares=(part,),
        policy=Policy.FAIR,
        isolation=Isolation.ADVISORY,
        holder=NobodyHolder(),
        user="bench",
        command=None,
        created_at=0,
    )
    write_limits(share / "limits", lease=lease, gpus=gpus)
    create_ledger(share / "ledger", devices=1)
    create_turns(share / "turns" / "0")
    for library in governor_folder().iterdir():
        (share / "lib" / library.name).symlink_to(library)
