"""Every function of NVML with nothing for its arguments, and with handles that are none: an error each time,
and never a crash. The last line says which answered with success."""

import ctypes
import json
import sys

library = ctypes.CDLL("libnvidia-ml.so.1")
library.nvmlInit_v2()
handle = ctypes.c_void_p()
assert library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
nothing = [ctypes.c_void_p(0)] * 7
succeeded = set()
questions = json.loads(sys.argv[1])  # of each function whether its first argument is a device
for name, about_a_device in questions.items():
    function = getattr(library, name)
    handles = [handle, ctypes.c_void_p(8), ctypes.c_void_p(handle.value + 1)] if about_a_device else []
    wanted = [nothing, *([one, *nothing] for one in handles)]
    for arguments in wanted:
        if function(*arguments) == 0:
            succeeded.add(name)
library.nvmlShutdown()
uninitialised = {name for name in questions if getattr(library, name)(*nothing) == 0}
print(json.dumps({"succeeded": sorted(succeeded), "uninitialised": sorted(uninitialised)}))
