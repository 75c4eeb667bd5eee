"""One file a command, named by it; each exposes ``command`` and is imported only when called.

A command parses, calls ``node`` (imported inside the function: ``--help`` must not pay for
it) and hands what it got to a view. What never: a second way to print, an exit code of its
own choice (``Reason`` has them), another command's file.
"""
