"""Launch a kernel without end, say what the context says when it was ended, and stay."""

import sys

from calls import SPIN, answer, c_uint64, context, cuda, function, launch, load

context()
launched = launch(function(load(SPIN), "spin"), c_uint64(1 << 40))
answer(launched=launched, ended=int(cuda.cuCtxSynchronize()))
sys.stdin.readline()
