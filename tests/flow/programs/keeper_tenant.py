"""The program ``tenant.py`` with verbs that go past its governor, for the keeper to see:

behind BYTES   cuMemAlloc of the driver itself, in the governed context: as a library does by a way of its own
scribble       nonsense over the head of the page of turns, which it opens and keeps open
smear AT       40 bytes of nonsense at AT of the page, through the governor's own mapping
work STOP      launch until the file STOP is there; the longest launch, in seconds
"""

import ctypes
import json
import mmap
import os
import sys
import time
from pathlib import Path

from tenant import Tenant


class KeeperTenant(Tenant):
    def behind(self, size: str) -> dict:
        maps = Path("/proc/self/maps").read_text().splitlines()
        (share, *_) = [Path(line.split()[5]).parent for line in maps if line.endswith("/ledger")]
        driver, pointer = ctypes.CDLL(str(share / "driver" / "libcuda.so.1")), ctypes.c_uint64()
        return {"result": driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(size)))}

    def scribble(self) -> dict:
        self.file = Path(os.environ["PAGE"]).open("r+b")  # noqa: SIM115 - kept open: that is how it is seen
        with mmap.mmap(self.file.fileno(), 0) as page:
            page[64:4096] = os.urandom(4096 - 64)
        return {}

    def smear(self, at: str) -> dict:
        name = Path(os.environ["PAGE"]).name
        maps = Path("/proc/self/maps").read_text().splitlines()
        (begin,) = [int(line.partition("-")[0], 16) for line in maps if line.endswith(("/turns/0", name))]
        ctypes.memset(begin + int(at), 0xAB, 40)
        return {}

    def work(self, stop: str) -> dict:
        longest = 0.0
        while not Path(stop).exists():
            before = time.monotonic()
            assert self.add()["right"]
            longest = max(longest, time.monotonic() - before)
        return {"longest": longest}


def main() -> None:
    tenant = KeeperTenant()
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        verb, *rest = line.split()
        words = rest if verb in vars(KeeperTenant) else [int(word) for word in rest]
        print(json.dumps(getattr(tenant, verb)(*words)), flush=True)


if __name__ == "__main__":
    main()
