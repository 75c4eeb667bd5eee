"""Where an ask goes on one node; and if nowhere, why, with every number.

What lives here: pure functions from ``Snapshot``, ``Ask`` and the live ``Share``s to ``Placed``
or ``Refused``, and what is said of either. What may be imported: ``aliquot.model`` and the
standard library. What never: a clock, a file, a random number. The same look at the same
machine always gives the same answer, so the book may ask again inside its transaction.

The rules, decided here and nowhere else:

- Memory free on a GPU is its capacity, less all live shares, less what other programs hold.
  Where it is unknown how much of the memory in use is theirs, all of it counts as theirs:
  too little is offered rather than too much. Free never goes below nothing.
- A whole GPU has no other share and at most ``IDLE_MEMORY`` in use by others. Nobody joins it.
- The GPUs of one lease have one vendor (a process loads one libcuda) and, where as many are
  free, one name. Two different models are taken only when there is no other way and none was named.
- Real GPUs go before software ones. Cards of other vendors are leased whole, and only by
  name: an ask that names no model means CUDA.
- A card in MIG mode is neither cut nor leased whole: CUDA finds no device on it until somebody
  has made instances, which this release does not see.
- Fallbacks are tried in order; the first that fits is taken, even if a later one fits better.
"""

from typing import TYPE_CHECKING

from aliquot.deferring import deferred
from aliquot.placement.models import matches, short_name
from aliquot.placement.placing import place
from aliquot.placement.rooms import IDLE_MEMORY

if TYPE_CHECKING:
    from aliquot.placement.explanations import explain, headline
    from aliquot.placement.refitting import refit
    from aliquot.placement.searching import nearest

# Of refusals and of live changes.
__getattr__ = deferred(
    __name__, {"explanations": "explain headline", "searching": "nearest", "refitting": "refit"}
)

__all__ = ["IDLE_MEMORY", "explain", "headline", "matches", "nearest", "place", "refit", "short_name"]
