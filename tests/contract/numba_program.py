"""An unmodified CUDA program: what it sees, a sum of two vectors, and an allocation past its share."""

import numpy as np
from numba import cuda


@cuda.jit
def add(left, right, total):  # type: ignore[no-untyped-def]
    place = cuda.grid(1)
    if place < total.size:
        total[place] = left[place] + right[place]


def main() -> None:
    free, total = cuda.current_context().get_memory_info()
    print("devices", len(cuda.gpus))
    print("total", total)
    count = 10_000
    left, right = np.arange(count, dtype=np.float32), np.full(count, 2, dtype=np.float32)
    answer = cuda.device_array(count, dtype=np.float32)
    add[(count + 127) // 128, 128](cuda.to_device(left), cuda.to_device(right), answer)
    print("right", bool((answer.copy_to_host() == left + right).all()))
    try:
        cuda.device_array(free + (1 << 20), dtype=np.uint8)
    except cuda.cudadrv.driver.CudaAPIError as error:
        print("past", "CUDA_ERROR_OUT_OF_MEMORY" in str(error))


main()
