"""What each process truly had of a device: `oracle.py FOLDER`."""

import sys
from ctypes import CDLL, Structure, byref, c_char, c_int32, c_uint64

from calls import answer


class Total(Structure):
    _fields_ = [
        *(
            (name, c_uint64)
            for name in ("now_ns", "slice_ns", "compute_ns", "switching_ns", "switches", "preemptions")
        ),
        ("time", c_int32),
        ("unused", c_int32),
    ]


class Account(Structure):
    _fields_ = [
        ("pid", c_int32),
        ("living", c_int32),
        *((name, c_uint64) for name in ("compute_ns", "copy_ns", "kernels", "copies", "bytes", "copied")),
        ("name", c_char * 64),
    ]


library, total, accounts = CDLL("libnvidia-ml.so.1"), Total(), (Account * 64)()
count = library.aliquotSoftgpuBusy(sys.argv[1].encode(), byref(total), accounts, 64)
assert count >= 0, count
names = [name for name, _ in Account._fields_ if name != "name"]
answer(
    **{name: getattr(total, name) for name, _ in Total._fields_},
    accounts=[{name: getattr(one, name) for name in names} for one in accounts[:count]],
    living_kernels=sum(one.kernels for one in accounts[:count] if one.living),
)
