"""Hold one of the locks of a device's state file until killed: `sit_on_lock.py STATE WHICH`."""

import fcntl
import os
import struct
import sys

from calls import answer

file = os.open(sys.argv[1], os.O_RDWR)
region = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, (1 << 40) + int(sys.argv[2]), 1, 0)
fcntl.fcntl(file, fcntl.F_OFD_SETLKW, region)
answer(pid=os.getpid())
sys.stdin.read()
