"""A share of a real software GPU behind the real governor, made by the stages themselves."""

import itertools
from dataclasses import replace
from pathlib import Path

from tests.contract.tenancy import LEASE, HandMadeShare

from aliquot import enforcement, softgpu
from aliquot.injection import ShareFolder
from aliquot.model import MIB, Bytes, DriverFiles, Gpu, Lease, Share, Thousandths, Vendor

LIMIT = 256 * MIB


class GovernedShare(HandMadeShare):
    """256 MiB of the first of two software GPUs."""

    def lease(self, *, whole: bool = False) -> Lease:
        memory = self.gpus[0].memory if whole else Bytes(LIMIT)
        share = Share(self.gpus[0].uuid, memory, Thousandths(250), whole=whole)
        return replace(super().lease(whole=whole), shares=(share,))


def make_governed(top: Path, libraries: dict[str, Path]) -> GovernedShare:
    root = top / "runtime" / "shares" / LEASE
    root.mkdir(parents=True)
    devices_folder = top / "state" / "softgpu"
    devices_folder.parent.mkdir()
    numbers = itertools.count(1)
    devices = softgpu.create(devices_folder, profile="T4", count=2, at=1, entropy=lambda: next(numbers))
    gpus = tuple(
        Gpu(device.uuid, index, Vendor.SOFTWARE, "T4", str(device.pci_id), memory=device.memory)
        for index, device in enumerate(devices)
    )
    (root / "lib").mkdir()
    for library in libraries["governor"].iterdir():
        (root / "lib" / library.name).symlink_to(library)
    names = tuple((path.name, str(path)) for path in sorted(libraries["softgpu"].glob("lib*.so*")))
    driver = DriverFiles(Vendor.SOFTWARE, names, folder=str(devices_folder))
    share = GovernedShare(top, ShareFolder(str(root)), driver, gpus)
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    enforcement.write_limits(Path(share.folder.limits), lease=share.lease(), gpus=by_uuid)
    enforcement.create_ledger(Path(share.folder.ledger), devices=1)
    (root / "turns").mkdir()
    enforcement.create_turns(Path(share.folder.turns(0)))
    return share
