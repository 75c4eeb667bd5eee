"""A machine made of files: sysfs, /proc, /dev, and an NVML that does what a script says."""

import shutil
import subprocess
from pathlib import Path

import pytest

from aliquot.inventory import look
from aliquot.model import Snapshot

LOADED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Wed Jan  1 00:00:00 UTC 2025\nGCC version: 12\n"

CARD = """card
name {name}
uuid {uuid}
bus {bus}
total 16106127360
reserved 455081984
used 1073741824
major 7
minor 5
cores 2560
busy 37
temperature 41
number {number}
ecc 0
"""


class FakeMachine:
    def __init__(self, folder: Path, nvml: Path) -> None:
        self.root = folder
        self.sysfs, self.proc, self.dev = folder / "sys", folder / "proc", folder / "dev"
        for made in (self.sysfs / "bus/pci/devices", self.sysfs / "bus/pci/drivers", self.proc, self.dev):
            made.mkdir(parents=True)
        self._nvml = nvml

    def look(
        self, *, softgpu_root: Path | None = None, softgpu_library_folder: Path | None = None
    ) -> Snapshot:
        return look(
            softgpu_root=softgpu_root,
            softgpu_library_folder=softgpu_library_folder or self.root / "nothing",
            sysfs=self.sysfs,
            proc=self.proc,
            dev=self.dev,
            root=self.root,
        )

    def install(self, script: str, *, version: str = "550.54.15", module: str | None = "550.54.15") -> None:
        """NVIDIA's driver: the library, and the kernel module where ``module`` is a version."""
        folder = self.root / "usr/lib64"
        self.library(folder, script, file=f"libnvidia-ml.so.{version}")
        if module is not None:
            self.write(self.proc / "driver/nvidia/version", LOADED.format(module))

    def library(self, folder: Path, script: str, *, file: str = "libnvidia-ml.so.1") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / file).exists():  # never written over: the process has it mapped
            shutil.copy(self._nvml, folder / file)
        link = folder / "libnvidia-ml.so.1"
        if file != link.name:
            link.unlink(missing_ok=True)
            link.symlink_to(file)
        (folder / "nvml.script").write_text(script)
        return link

    def card(self, number: int = 0, *, name: str = "Tesla T4", bus: str | None = None, more: str = "") -> str:
        """The script's lines of one card; on the bus it is ``0000:3b:00.0`` and so on."""
        text = CARD.format(
            name=name,
            uuid=f"GPU-0000000{number}-0000-4000-8000-000000000000",
            bus=bus or f"00000000:{0x3B + number:02X}:00.0",
            number=number,
        )
        return f"{text}{more}\n"

    def pci(
        self,
        pci_id: str = "0000:3b:00.0",
        *,
        vendor: int = 0x10DE,
        device: int = 0x1EB8,
        code: int = 0x030200,
        driver: str | None = "nvidia",
        config: bytes = b"\xde\x10\xb8\x1e",
        **files: str,
    ) -> Path:
        """A function on the bus; ``files``: more attributes, ``__`` for ``/`` in their names."""
        folder = self.sysfs / "bus/pci/devices" / pci_id
        self.write(folder / "vendor", f"0x{vendor:04x}\n")
        self.write(folder / "device", f"0x{device:04x}\n")
        self.write(folder / "class", f"0x{code:06x}\n")
        (folder / "config").write_bytes(config)
        for name, content in files.items():
            self.write(folder / name.replace("__", "/"), content)
        if driver is not None:
            target = self.sysfs / "bus/pci/drivers" / driver
            target.mkdir(exist_ok=True)
            (folder / "driver").symlink_to(target)
        return folder

    def kernel_card(self, pci_id: str, *, uuid: str, minor: int, model: str = "Tesla T4") -> None:
        self.write(
            self.proc / "driver/nvidia/gpus" / pci_id / "information",
            f"Model: \t\t {model}\nIRQ:   \t\t 33\nGPU UUID: \t {uuid}\nVideo BIOS: \t 90.04.38.00.03\n"
            f"Bus Type: \t PCIe\nBus Location: \t {pci_id}\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n",
        )

    def write(self, path: Path, content: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("fake_nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("fake_nvml.c")
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-Wl,-soname,libnvidia-ml.so.1", "-o", str(built), str(source)], check=True)
    return built


@pytest.fixture
def machine(tmp_path: Path, fake_nvml: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "machine", fake_nvml)
