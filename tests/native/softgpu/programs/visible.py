"""The bus numbers of the devices that this program sees."""

import ctypes

from calls import answer, byref, check, cuda

result = cuda.cuInit(0)
buses = []
if result == 0:
    count = ctypes.c_int()
    check(cuda.cuDeviceGetCount(byref(count)))
    for ordinal in range(count.value):
        bus = ctypes.c_int()
        check(cuda.cuDeviceGetAttribute(byref(bus), 33, ordinal))
        buses.append(bus.value)
answer(result=result, buses=buses)
