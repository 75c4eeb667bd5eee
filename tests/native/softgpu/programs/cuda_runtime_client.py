"""NVIDIA's CUDA runtime, by its path: what it says on a software GPU."""

import ctypes
import json
import sys

runtime = ctypes.CDLL(sys.argv[1])
runtime.cudaGetErrorName.restype = runtime.cudaGetErrorString.restype = ctypes.c_char_p
count, place = ctypes.c_int(-1), ctypes.c_void_p()
counted = runtime.cudaGetDeviceCount(ctypes.byref(count))
allocated = runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(100))
print(
    json.dumps(
        {
            "counted": runtime.cudaGetErrorName(counted).decode(),
            "allocated": runtime.cudaGetErrorName(allocated).decode(),
            "sentence": runtime.cudaGetErrorString(allocated).decode(),
            "count": count.value,
        }
    )
)
