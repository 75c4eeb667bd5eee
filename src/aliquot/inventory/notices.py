"""What can be wrong with a machine's GPUs, each with the step that mends it."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from aliquot.inventory.nvidia import NvmlCode, NvmlError
from aliquot.model import Gpu, HealthState, Notice, Severity

_INSTALL = (
    "install NVIDIA's driver, on Debian: sudo apt install nvidia-driver (component non-free), then reboot"
)
_RELOAD = (
    "reboot; or without one: sudo systemctl stop nvidia-persistenced; "
    "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia"
)


def no_gpu() -> Notice:
    return Notice(
        "no-gpu", Severity.WARNING, "No GPU was found on this machine.", "aliquot softgpu create T4"
    )


def driver_missing(cards: str, *, module_loaded: bool, wsl: bool) -> Notice:
    """The library is not here. With the module loaded we are probably inside a container."""
    if wsl:
        text, fix = (
            "Windows offers a GPU, but libnvidia-ml.so.1 is missing.",
            ("install NVIDIA's driver on Windows, then: wsl --shutdown"),
        )
    elif module_loaded:
        text = f"NVIDIA's kernel module is loaded, but its library libnvidia-ml.so.1 is missing ({cards})."
        fix = (
            "on Debian: sudo apt install libnvidia-ml1 libcuda1, of the module's version; "
            "in a container, start it so that it gets the GPU"
        )
    else:
        text, fix = f"An NVIDIA card is here, but no driver for it ({cards}).", _INSTALL
    return Notice("driver-missing", Severity.ERROR, text, fix)


def driver_nouveau(cards: str) -> Notice:
    return Notice(
        "driver-nouveau",
        Severity.ERROR,
        f"The driver nouveau drives {cards}; CUDA needs NVIDIA's own.",
        _INSTALL,
    )


def passed_through(card: str, pci_id: str, driver: str) -> Notice:
    return Notice(
        "gpu-passed-through",
        Severity.INFO,
        f"{card} is bound to {driver}, for a virtual machine; it cannot be used here.",
        f"to use it here: sudo driverctl unset-override {pci_id}",
    )


def unsupported(cards: str, version: str | None) -> Notice:
    return Notice(
        "gpu-unsupported",
        Severity.WARNING,
        f"NVIDIA's driver {version or ''} does not drive {cards}.".replace("  ", " "),
        "sudo dmesg | grep NVRM says why; a card too old or too new for this driver needs another",
    )


def unreachable(words: str) -> Notice:
    """For a card of which not even its place on the bus is known any more."""
    return Notice(
        "gpu-lost",
        Severity.ERROR,
        f"NVIDIA's driver counts a GPU that it cannot reach: {words}.",
        "sudo dmesg | grep NVRM names it; power the machine off and on",
    )


def driver_failed(
    failure: NvmlError, *, library: Path, library_version: str | None, module_version: str | None, dev: Path
) -> Notice:
    """NVML was found and does not start: which of the ways to break this is."""
    match failure.code:
        case NvmlCode.LIB_RM_VERSION_MISMATCH:
            return Notice(
                "driver-mismatch",
                Severity.ERROR,
                f"NVIDIA's library is version {library_version or 'unknown'} and the loaded kernel module "
                f"is {module_version or 'unknown'}: the driver was upgraded under it.",
                _RELOAD,
            )
        case NvmlCode.NO_PERMISSION | NvmlCode.OPERATING_SYSTEM:
            return _no_permission(dev)
        case NvmlCode.DRIVER_NOT_LOADED:
            return Notice(
                "driver-not-loaded",
                Severity.ERROR,
                "NVIDIA's library is here, but its kernel module is not loaded.",
                "sudo modprobe nvidia; where that fails, sudo dmesg | grep -i -e NVRM -e nvidia says why "
                "(often: no module for this kernel, or Secure Boot)",
            )
        case NvmlCode.LIBRARY_NOT_FOUND:
            return Notice(
                "driver-unloadable",
                Severity.ERROR,
                f"{library} cannot be loaded: {failure.words}.",
                "install the driver's packages again, all of one version",
            )
        case NvmlCode.FUNCTION_NOT_FOUND:
            return Notice(
                "driver-too-old",
                Severity.ERROR,
                f"{library} lacks functions that Aliquot needs: it is too old, or no NVML.",
                _INSTALL,
            )
        case NvmlCode.GPU_IS_LOST | NvmlCode.RESET_REQUIRED:
            return Notice("gpu-lost", Severity.ERROR, f"NVIDIA's driver: {failure.words}.", "reboot")
    if _open_error(dev / "nvidiactl") in (errno.EPERM, errno.EACCES):
        return _no_permission(dev)
    return Notice(
        "driver-broken",
        Severity.ERROR,
        f"NVIDIA's driver does not start: {failure.words}.",
        "nvidia-smi shows whether others can use it; sudo dmesg | grep NVRM may say why",
    )


def software_failed(failure: NvmlError, root: Path) -> Notice:
    return Notice(
        "softgpu-broken",
        Severity.ERROR,
        f"The software GPUs in {root} cannot be read: {failure.words}.",
        "build the native parts anew (make build), or install Aliquot again",
    )


def software_library_missing(folder: Path) -> Notice:
    return Notice(
        "softgpu-library-missing",
        Severity.ERROR,
        f"There are software GPUs, but their driver is not in {folder}.",
        "make build builds it in a checkout; a packaged Aliquot has it",
    )


def software_device_broken(name: str) -> Notice:
    return Notice(
        "softgpu-device-broken",
        Severity.WARNING,
        f"The software GPU {name} cannot be read: files of it are missing or damaged.",
        f"aliquot softgpu remove {name}",
    )


def of_health(gpus: Iterable[Gpu]) -> list[Notice]:
    """One for each card that is out of service through its own fault."""
    return [notice for notice in map(_of_health, gpus) if notice is not None]


def _of_health(gpu: Gpu) -> Notice | None:
    who = f"{gpu.name} at {gpu.pci_id}"
    if gpu.health.state is HealthState.LOST:
        return Notice(
            "gpu-lost",
            Severity.ERROR,
            f"{who} is lost: {gpu.health.why}.",
            f"sudo nvidia-smi --gpu-reset -i {gpu.pci_id}; where that fails, power the machine off and on",
        )
    if gpu.health.state is HealthState.UNHEALTHY:
        return Notice(
            "gpu-unhealthy",
            Severity.WARNING,
            f"{who} is unhealthy: {gpu.health.why}.",
            f"end what runs on it, then: sudo nvidia-smi --gpu-reset -i {gpu.pci_id}",
        )
    return None


def _no_permission(dev: Path) -> Notice:
    """EPERM is a device cgroup, as in a container that lost its rules; else it is the node's mode."""
    node = dev / "nvidiactl"
    if _open_error(node) == errno.EPERM:
        return Notice(
            "driver-no-permission",
            Severity.ERROR,
            f"NVIDIA's driver is here, but this container may not open {node}: its device rules are gone.",
            "start the container anew, with the GPU given to it as a device (--device or CDI)",
        )
    group = _group(node)
    if group is None or group == "root":
        fix = f"sudo chmod a+rw {dev}/nvidia*; for good: NVreg_DeviceFileMode=0666 in /etc/modprobe.d"
    else:
        fix = f"sudo usermod -aG {group} $USER, then log in anew"
    return Notice(
        "driver-no-permission",
        Severity.ERROR,
        f"NVIDIA's driver is here, but this user may not open {node}.",
        fix,
    )


def _open_error(node: Path) -> int | None:
    """The errno of opening ``node``; None where it opens."""
    try:
        os.close(os.open(node, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return error.errno
    return None


def _group(node: Path) -> str | None:
    try:
        return node.group()
    except (OSError, KeyError, NotImplementedError):
        return None
