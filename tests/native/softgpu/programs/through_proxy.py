"""Load the driver as a governor does: by absolute path, local and at once; then what it sees.

`through_proxy.py FOLDER`: the folder has libcuda.so.1 and perhaps the devices."""

import ctypes
import json
import sys
from ctypes import byref, c_int

RTLD_NOW, RTLD_NOLOAD = 2, 4
library = ctypes.CDLL(f"{sys.argv[1]}/libcuda.so.1", mode=RTLD_NOW | ctypes.RTLD_LOCAL)
result = library.cuInit(0)
count = c_int(-1)
names = []
if result == 0:
    library.cuDeviceGetCount(byref(count))
    for ordinal in range(count.value):
        uuid = (ctypes.c_ubyte * 16)()
        library.cuDeviceGetUuid_v2(uuid, ordinal)
        names.append(bytes(uuid).hex())


def loaded(soname: str) -> bool:
    try:
        ctypes.CDLL(soname, mode=RTLD_NOLOAD | RTLD_NOW)
    except OSError:
        return False
    return True


print(
    json.dumps(
        {
            "result": result,
            "devices": names,
            "nvjitlink": [loaded("libnvJitLink.so.12"), loaded("libnvJitLink.so.13")],
        }
    )
)
