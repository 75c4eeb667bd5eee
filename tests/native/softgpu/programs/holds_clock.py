"""A process that uses the device and then does not wait for it: `holds_clock.py asleep|busy|computes`."""

import sys
import time

from calls import answer, context
from model_clock import MILLISECOND, Kernels, now, synchronize

context()
kernels = Kernels()
kernels.sleep(MILLISECOND)
synchronize()
begin = now()
kernels.sleep(MILLISECOND)
if sys.argv[1] == "computes":
    end = time.process_time() + 1.3
    while time.process_time() < end:
        pass
    after = now()
    synchronize()
    answer(before=begin, after=after, computed_s=1.3)
else:
    answer(ready=True)
    while sys.argv[1] == "busy":
        pass
    time.sleep(60)
