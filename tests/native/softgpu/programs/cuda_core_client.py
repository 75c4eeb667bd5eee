"""cuda.core with NVRTC: C++ to PTX, launched on the software GPU; and the raw bindings beside it."""

import json

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
__device__ int counter = 5;
extern "C" __global__ void weigh(const float *in, float *out, float weight, int count) {
    extern __shared__ float staged[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    staged[threadIdx.x] = i < count ? in[i] : 0.0f;
    __syncthreads();
    if (i < count) out[i] = weight * staged[threadIdx.x] + staged[blockDim.x - 1 - threadIdx.x];
    if (i == 0) atomicAdd(&counter, 37);
}
"""
device = Device(0)
device.set_current()
stream = device.create_stream()
major, minor = device.compute_capability
code = Program(SOURCE, "c++", options=ProgramOptions(arch=f"sm_{major}{minor}")).compile("ptx")
kernel = code.get_kernel("weigh")
values = np.arange(512, dtype=np.float32)
into, out = (
    device.memory_resource.allocate(2048, stream=stream),
    device.memory_resource.allocate(2048, stream=stream),
)


def check(result):
    assert result[0] == 0, result
    return result[1:]


check(driver.cuMemcpyHtoDAsync(int(into.handle), values.ctypes.data, values.nbytes, int(stream.handle)))
launch(
    stream,
    LaunchConfig(grid=4, block=128, shmem_size=512),
    kernel,
    int(into.handle),
    int(out.handle),
    np.float32(2),
    np.int32(512),
)
result = np.empty_like(values)
check(driver.cuMemcpyDtoHAsync(result.ctypes.data, int(out.handle), result.nbytes, int(stream.handle)))
stream.sync()
blocks = values.reshape(4, 128)
expected = 2 * blocks + blocks[:, ::-1]
(module,) = check(driver.cuModuleLoadData(bytes(code.code)))
(address, size) = check(driver.cuModuleGetGlobal(module, b"counter"))
counter = np.zeros(1, dtype=np.int32)
check(driver.cuMemcpyDtoH(counter.ctypes.data, address, size))
print(
    json.dumps(
        {
            "right": bool(np.array_equal(result, expected.ravel())),
            "name": device.name,
            "initial_counter": int(counter[0]),
            "registers": kernel.attributes.num_regs,
            "arguments": kernel.num_arguments,
        }
    )
)
