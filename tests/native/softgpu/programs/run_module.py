"""Run another package as a program, as `python -m` does: `run_module.py PACKAGE ARGUMENTS...`."""

import runpy
import sys

del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
