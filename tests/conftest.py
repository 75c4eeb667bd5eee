"""For all tests: nothing of how they were started is left in them."""

import signal

# `nohup`, and a shell that starts us in the background, leave signals ignored, and every program that
# a test starts would inherit that.
for _signal in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal == signal.SIGINT else signal.SIG_DFL)
