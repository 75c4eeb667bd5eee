"""``aliquot doctor``: is this machine fit for shares, and if not, what mends it.

A check that cannot be made is None with the reason, never a pass.
"""

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aliquot.enforcement import Keeping, governor_folder
from aliquot.injection import Engine, probe
from aliquot.lease import open_book
from aliquot.model import AliquotError, Gpu, Severity, Snapshot, Vendor
from aliquot.node.cdi import USUAL_FOLDERS, stale_specs
from aliquot.node.keepers import keeper_gone, keeping_of
from aliquot.node.libraries import ensure_copied
from aliquot.node.paths import Paths, make_folder
from aliquot.node.private_mounts import why_not


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool | None
    text: str
    fix: str | None = None


def check_machine(paths: Paths, snapshot: Snapshot) -> tuple[Check, ...]:
    return (
        *_driver(snapshot),
        *_gpus(snapshot),
        _governor(paths),
        _folder("state folder", paths.state),
        _folder("runtime folder", paths.runtime),
        _book(paths),
        *_keepers(paths),
        _mounts(),
        *_engines(),
        _cdi(paths),
    )


def _driver(snapshot: Snapshot) -> Iterator[Check]:
    for notice in snapshot.notices:
        # No driver is a fault only where a card waits for one: a machine without GPUs is sound.
        ok = None if notice.severity is Severity.INFO else False
        yield Check(f"driver: {notice.code}", ok, notice.text, notice.fix)
    if not snapshot.notices and snapshot.node.driver_version is not None:
        yield Check("driver", True, f"NVIDIA {snapshot.node.driver_version} answers")


def _gpus(snapshot: Snapshot) -> Iterator[Check]:
    software = sum(gpu.vendor is Vendor.SOFTWARE for gpu in snapshot.gpus)
    real = len(snapshot.gpus) - software
    if snapshot.gpus:
        yield Check("GPUs", True, f"{real} real, {software} software")
    else:
        yield Check("GPUs", False, "none", "aliquot softgpu create T4")
    for gpu in snapshot.gpus:
        if gpu.health.state.value in ("unhealthy", "lost"):
            why = f": {gpu.health.why}" if gpu.health.why else ""
            text = f"{gpu.name} is {gpu.health.state.value}{why}"
            yield Check(f"GPU {gpu.index}", False, text, _fix_of(gpu))


def _fix_of(gpu: Gpu) -> str:
    if gpu.vendor is Vendor.SOFTWARE:  # fails only because it was told to
        return f"aliquot softgpu fail {gpu.uuid} --clear"
    return f"nvidia-smi -q -i {gpu.pci_id}"


def _governor(paths: Paths) -> Check:
    name = "governor"
    try:
        folder = ensure_copied(governor_folder(), paths.libraries)
    except AliquotError as error:
        return Check(name, False, error.message, _first(error))
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return Check(
            name,
            False,
            f"{folder} is mounted noexec, so no program can load the governor from there",
            "export ALIQUOT_STATE_DIR=/a/folder/on/another/filesystem",
        )
    return Check(name, True, f"at {folder}")


def _folder(name: str, folder: Path) -> Check:
    try:
        make_folder(folder, 0o711)
    except AliquotError as error:
        return Check(name, False, error.message, _first(error))
    free = shutil.disk_usage(folder).free
    if free < 16 << 20:
        return Check(name, False, f"{folder} has {free >> 20} MiB left", f"df -h {folder}")
    return Check(name, True, str(folder))


def _book(paths: Paths) -> Check:
    try:
        with open_book(paths.book) as book:
            live, faults = len(book.leases(live=True)), book.check()
    except AliquotError as error:
        return Check("book", False, error.message, _first(error))
    if faults:
        return Check("book", False, f"{paths.book}: {faults[0]}", f"cp -a {paths.book} /a/safe/place/")
    return Check("book", True, f"{paths.book}, {live} live lease{'' if live == 1 else 's'}")


def _keepers(paths: Paths) -> Iterator[Check]:
    try:
        with open_book(paths.book) as book:
            live = book.leases(live=True)
    except AliquotError:
        yield Check("keepers", None, "the book cannot be read")
        return
    keeping = {lease: keeping_of(paths, lease, now=time.monotonic_ns()) for lease in live}
    gone = [lease for lease, how in keeping.items() if how is Keeping.GONE]
    for lease in gone:
        notice = keeper_gone(paths, lease)
        yield Check("keepers", False, notice.text, notice.fix)
    if not gone:
        kept = sum(how is Keeping.KEPT for how in keeping.values())
        yield Check("keepers", True, f"of {kept} share{'' if kept == 1 else 's'}, all at work")


def _mounts() -> Check:
    failed = why_not()
    if failed is None:
        return Check("process shares", True, "in mounts of their own, over every file of the driver")
    # Not a fault of the machine: many containers and some distributions do not allow it.
    return Check("process shares", None, f"by LD_LIBRARY_PATH alone, so advisory: {failed}")


def _engines() -> Iterator[Check]:
    found = False
    for program in ("podman", "docker"):
        if shutil.which(program) is None:
            continue
        found = True
        try:
            yield _engine(program, probe([program]))
        except AliquotError as error:
            # Not running is no fault of a machine that runs no containers.
            yield Check(program, None, error.message, _first(error))
    if not found:
        yield Check("container engines", None, "neither podman nor docker is on PATH")


def _engine(program: str, engine: Engine) -> Check:
    version = ".".join(map(str, engine.server_version or ())) or "of unknown version"
    way = f"CDI from {', '.join(engine.cdi_folders)}" if engine.cdi_folders else "no CDI: plain options"
    if engine.defaults_to_nvidia:
        plain = engine.plain_runtime or "none"
        return Check(
            program,
            engine.plain_runtime is not None,
            f"{version}, {way}; its default runtime `{engine.default_runtime}` hands out every card, "
            f"Aliquot uses `{plain}` instead",
            None
            if engine.plain_runtime
            else "install runc, or remove default-runtime from its configuration",
        )
    return Check(program, True, f"{version}, {way}, runtime {engine.default_runtime or 'unknown'}")


def _cdi(paths: Paths) -> Check:
    try:
        with open_book(paths.book) as book:
            live = [lease.id for lease in book.leases(live=True)]
    except AliquotError:
        return Check("CDI specifications", None, "the book cannot be read")
    stale = [f"{where}: {lease}" for where in USUAL_FOLDERS for lease in stale_specs(paths, where, live)]
    if stale:
        text = f"of ended leases: {', '.join(stale)}"
        return Check("CDI specifications", False, text, "aliquot leases   (removes them)")
    return Check("CDI specifications", True, "none of an ended lease")


def _first(error: AliquotError) -> str | None:
    return error.next[0][0] if error.next else error.reason.fix
