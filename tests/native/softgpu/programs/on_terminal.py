"""Run a program on a terminal of its own and read its screen: `on_terminal.py JSON`, with `command`, `until`
(regular expressions, each of which must be found in a line) and `seconds`. Answers with the lines of the
screen, when all were found or the time was over."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import pyte

ROWS, COLUMNS = 50, 150


def main() -> None:
    order = json.loads(sys.argv[1])
    child, terminal = pty.fork()
    if child == 0:
        # Here and not in the parent, where the program could read the size before it is set.
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        for size in ("LINES", "COLUMNS"):  # pytest-xdist sets them, and curses believes them
            os.environ.pop(size, None)
        os.execvp(order["command"][0], order["command"])
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    deadline = time.monotonic() + order["seconds"]
    try:
        while time.monotonic() < deadline and not all_there(screen, order["until"]):
            if select.select([terminal], [], [], 0.2)[0]:
                stream.feed(os.read(terminal, 65536))
    except OSError:  # the program ended and its terminal with it
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(json.dumps({"screen": [line.rstrip() for line in screen.display]}))


def all_there(screen: pyte.Screen, wanted: list[str]) -> bool:
    return all(any(re.search(one, line) for line in screen.display) for one in wanted)


main()
