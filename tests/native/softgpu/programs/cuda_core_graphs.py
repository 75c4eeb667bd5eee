"""Graphs through cuda.core: captured on a stream, forked and joined, launched again and again; and streams
and events of the same library."""

import json

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, EventOptions, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
extern "C" __global__ void add(int *values, int amount) { values[threadIdx.x] += amount; }
extern "C" __global__ void twice(int *values) { values[threadIdx.x] *= 2; }
"""
COUNT = 32
device = Device(0)
device.set_current()
stream = device.create_stream()
major, minor = device.compute_capability
code = Program(SOURCE, "c++", options=ProgramOptions(arch=f"sm_{major}{minor}")).compile("ptx")
add, twice = code.get_kernel("add"), code.get_kernel("twice")
config = LaunchConfig(grid=1, block=COUNT)


def check(result):
    assert result[0] == 0, result
    return result[1:]


first, second = (check(driver.cuMemAlloc(4 * COUNT))[0] for _ in range(2))


def fill(address, value):
    check(driver.cuMemsetD32(address, value, COUNT))


def read(address):
    values = np.empty(COUNT, dtype=np.int32)
    check(driver.cuMemcpyDtoH(values.ctypes.data, address, values.nbytes))
    assert len(set(values.tolist())) == 1
    return int(values[0])


builder = stream.create_graph_builder()
builder.begin_building()
launch(builder, config, add, int(first), np.int32(3))
left, right = builder.split(2)
launch(left, config, twice, int(first))
launch(right, config, add, int(second), np.int32(5))
builder = type(builder).join(left, right)
launch(builder, config, add, int(first), np.int32(100))
graph = builder.end_building().complete()

fill(first, 1)
fill(second, 10)
before = read(first), read(second)
timed = EventOptions(timing_enabled=True)
begin = stream.record(options=timed)
graph.upload(stream)
graph.launch(stream)
graph.launch(stream)
end = stream.record(options=timed)
end.sync()
print(
    json.dumps(
        {
            "before": before,
            "after": (read(first), read(second)),
            "expected": ((((1 + 3) * 2 + 100) + 3) * 2 + 100, 10 + 5 + 5),
            "done": end.is_done,
            "elapsed": end - begin,
        }
    )
)
