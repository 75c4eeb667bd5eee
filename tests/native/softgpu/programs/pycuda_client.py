"""PyCUDA with PTX that NVRTC made: kernels, streams and events, globals, arrays of its own."""

import json
import sys

import numpy as np
import pycuda.driver as driver
import pycuda.gpuarray as gpuarray
from cuda.bindings import nvrtc

SOURCE = b"""
__constant__ float scale[4];
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void scaled(float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] *= scale[i % 4];
}
"""


def compiled() -> bytes:
    _, program = nvrtc.nvrtcCreateProgram(SOURCE, b"kernels.cu", 0, [], [])
    (error,) = nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_75"])
    assert error == 0, error
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = b" " * size
    nvrtc.nvrtcGetPTX(program, text)
    return text


driver.init()
device = driver.Device(0)
context = device.make_context()
module = driver.module_from_buffer(compiled())
saxpy = module.get_function("saxpy")
rng = np.random.default_rng(1)
x, y = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
expected = (x.astype("f8") * np.float32(2.5) + y).astype("f4")  # one rounding: a fused multiply-add
given = y.copy()
saxpy(np.float32(2.5), driver.In(x), driver.InOut(given), np.int32(1000), block=(128, 1, 1), grid=(8, 1))

stream, before, after = driver.Stream(), driver.Event(), driver.Event()
device_x, device_y = driver.to_device(x), driver.to_device(y)
saxpy.prepare("fPPi")
before.record(stream)
saxpy.prepared_async_call((8, 1), (128, 1, 1), stream, 2.5, int(device_x), int(device_y), 1000)
after.record(stream)
after.synchronize()
in_stream = driver.from_device_like(device_y, y)

constant, size = module.get_global("scale")
driver.memcpy_htod(constant, np.array([1, 2, 3, 4], np.float32))
array = gpuarray.to_gpu(x)
module.get_function("scaled")(array.gpudata, np.int32(1000), block=(256, 1, 1), grid=(4, 1))
print(
    json.dumps(
        {
            "name": device.name(),
            "given": bool(np.array_equal(given, expected)),
            "in_stream": bool(np.array_equal(in_stream, expected)),
            "took": after.time_since(before),
            "constant_bytes": size,
            "scaled": bool(np.array_equal(array.get(), x * np.tile(np.float32([1, 2, 3, 4]), 250))),
        }
    )
)
context.pop()
sys.exit()
