"""A container's root file system, made on the spot: no registry is asked.

Busybox for a shell, and this machine's C library laid out as Debian does, so that programs and
the driver's libraries of this machine run in it. A second and a tenth of a second, 4 MB.
"""

import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

_APPLETS = "sh cat env grep id ls mkdir mount umount rm sleep stat test touch true false tty wc head seq kill"
_LIBRARIES = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")


def make_rootfs(folder: Path, programs: Mapping[str, Path] | None = None) -> Path:
    """Lay out a root file system in ``folder`` (new), with ``programs`` in /usr/bin by name.

    Needs Debian's busybox-static.
    """
    busybox = shutil.which("busybox")
    if busybox is None:
        raise RuntimeError("busybox is missing: apt-get install busybox-static")
    for name in ("usr/bin", "usr/lib64", "etc", "proc", "sys", "dev", "tmp", "run"):
        (folder / name).mkdir(parents=True)
    (folder / "tmp").chmod(0o1777)
    for name in ("bin", "lib64", "lib"):
        (folder / name).symlink_to(f"usr/{name}")
    shutil.copy(busybox, folder / "usr/bin/busybox")
    for applet in _APPLETS.split():
        (folder / "usr/bin" / applet).symlink_to("busybox")
    (folder / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n", encoding="utf-8")
    _copy_c_library(folder)
    for name, program in (programs or {}).items():
        shutil.copy(program, folder / "usr/bin" / name)
    return folder


def _copy_c_library(folder: Path) -> None:
    for name in _LIBRARIES:
        found = _compiler_says(f"-print-file-name={name}")
        target = folder / "usr/lib" / Path(found).resolve().parent.name / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(found).resolve(), target)
    loader = Path(_compiler_says("-print-file-name=ld-linux-x86-64.so.2")).resolve()
    shutil.copy(loader, folder / "usr/lib64/ld-linux-x86-64.so.2")


def _compiler_says(question: str) -> str:
    return subprocess.run(["gcc", question], check=True, capture_output=True, text=True).stdout.strip()


def pack(folder: Path, archive: Path) -> Path:
    """``folder`` as an uncompressed tar, everything owned by root, readable by any user."""
    with tarfile.open(archive, "w") as tar:
        tar.add(folder, arcname=".", filter=_owned_by_root)
    archive.chmod(0o644)
    return archive


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
