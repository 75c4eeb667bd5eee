"""What NVML answers to a question about memory, and how many seconds that takes."""

import ctypes
import time
from ctypes import byref, c_void_p

from calls import answer

nvml = ctypes.CDLL("libnvidia-ml.so.1")
device = c_void_p()
values = (ctypes.c_ulonglong * 3)()
assert nvml.nvmlInit_v2() == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(device)) == 0
began = time.monotonic()
result = nvml.nvmlDeviceGetMemoryInfo(device, values)
answer(result=result, seconds=time.monotonic() - began)
