"""The main job, shown: two programs in two shares of one GPU, and the same without Aliquot.

What lives here: a story told as the commands a user would type, with their real output, and
the two CUDA programs it runs. What may be imported: ``model`` and the standard library; it
starts ``aliquot`` as a user would and knows no other package. What never: a figure that was
not just measured, a line that a command did not print.
"""

from aliquot.demo.story import tell

__all__ = ["tell"]
