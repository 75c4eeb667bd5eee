"""What each process truly had of a software GPU: for tests, and for who explains a figure.

It is read by the device's own library (aliquotSoftgpuBusy of native/softgpu/aliquot_softgpu.h), which knows
the layout of the shared state.
"""

import ctypes
import os
from dataclasses import dataclass

from aliquot.model import AliquotError, Reason
from aliquot.softgpu.devices import SoftGpu
from aliquot.softgpu.libraries import library_folder

_TIMES = ("real", "scaled", "virtual")
_MOST = 512


class _Total(ctypes.Structure):
    _fields_ = (
        ("now_ns", ctypes.c_uint64),
        ("slice_ns", ctypes.c_uint64),
        ("compute_ns", ctypes.c_uint64),
        ("switching_ns", ctypes.c_uint64),
        ("switches", ctypes.c_uint64),
        ("preemptions", ctypes.c_uint64),
        ("time", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    )


class _Account(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_int32),
        ("living", ctypes.c_int32),
        ("compute_ns", ctypes.c_uint64),
        ("copy_ns", ctypes.c_uint64),
        ("kernels", ctypes.c_uint64),
        ("copies", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("copied", ctypes.c_uint64),
        ("name", ctypes.c_char * 64),
    )


@dataclass(frozen=True, slots=True)
class Account:
    """One process. ``None`` where the device's kind of time does not tell."""

    pid: int | None
    name: str
    living: bool
    compute_ns: int
    kernels: int
    copy_ns: int | None
    copies: int | None
    moved_bytes: int | None
    copied_bytes: int | None


@dataclass(frozen=True, slots=True)
class Busy:
    time: str
    now_ns: int
    compute_ns: int
    slice_ns: int
    switching_ns: int | None
    switches: int
    preemptions: int
    accounts: tuple[Account, ...]


def read_busy(device: SoftGpu) -> Busy:
    """Raises AliquotError(FAILED) where the state cannot be read."""
    library = ctypes.CDLL(str(library_folder() / "libnvidia-ml.so.1"))
    total, accounts = _Total(), (_Account * _MOST)()
    folder = os.fsencode(device.folder)
    count = int(library.aliquotSoftgpuBusy(folder, ctypes.byref(total), accounts, _MOST))
    if count < 0:
        raise AliquotError(
            Reason.FAILED,
            f"what {device.uuid} did cannot be read: {os.strerror(-count)}",
            next=[("aliquot doctor", "looks at the device")],
        )
    modelled = total.time != 0
    return Busy(
        time=_TIMES[total.time],
        now_ns=total.now_ns,
        compute_ns=total.compute_ns,
        slice_ns=total.slice_ns,
        switching_ns=total.switching_ns if modelled else None,
        switches=total.switches,
        preemptions=total.preemptions,
        accounts=tuple(_account(accounts[index], modelled) for index in range(count)),
    )


def _account(one: _Account, modelled: bool) -> Account:
    return Account(
        pid=one.pid or None,
        name=one.name.decode(errors="replace"),
        living=bool(one.living),
        compute_ns=one.compute_ns,
        kernels=one.kernels,
        copy_ns=one.copy_ns if modelled else None,
        copies=one.copies if modelled else None,
        moved_bytes=one.bytes if modelled else None,
        copied_bytes=one.copied if modelled else None,
    )
