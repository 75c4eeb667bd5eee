"""A kernel that numba keeps on disk: says whether it came from there, and whether it is right."""

import json
import warnings

import numpy as np
from numba import cuda

warnings.simplefilter("ignore")


@cuda.jit("void(float32[:], float32)", cache=True)
def scale(values, factor):
    i = cuda.grid(1)
    if i < values.size:
        values[i] *= factor


values = np.arange(1000, dtype=np.float32)
scale[4, 256](values, np.float32(3))
hits = sum(scale.stats.cache_hits.values())
print(
    json.dumps({"hits": hits, "right": bool(np.array_equal(values, 3 * np.arange(1000, dtype=np.float32)))})
)
