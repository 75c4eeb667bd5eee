"""How strongly a lease can be held, told honestly.

A governed share is held by a library in the tenant's own process. Where every usual name of the
driver leads to it and the tenant can neither take that away nor write the limits, it is `soft`:
in a container, and in a private mount namespace whose tenant has another uid than the share's
files, and is not root. It is not more than that, because the driver's own file must be readable in
there too, and a program that goes looking for it, or brings its own, or speaks to the device
itself, is not stopped.

Any other process share is `advisory`, and says why: its tenant owns the share's files, or is
root, or could not be given a mount namespace, and then only needs another LD_LIBRARY_PATH.

A whole GPU in a container is held by the kernel: the container has the device node of its card
(or the folder of its software GPU) and no other, and the device cgroup and the mount namespace
are nothing that the tenant can change. Nobody else is on the card, so there is nothing within it
to hold. That is `firm` and not `hard`: the control nodes and the driver in the kernel are common
to all cards. (`--privileged` would undo it; injection refuses it by name.) A whole GPU as a bare
process sees every other card as well: `advisory`.
"""

from aliquot.model import Isolation

TAKEN_AHEAD = "any process may use it, by its library path alone"
"""Why a lease is advisory that is taken before it is known what will run in it."""

UNKNOWN_PASSES = (
    "functions that this Aliquot does not know reach the driver, and nobody counts what they take"
)
"""Why one is that was asked with ``--unknown pass``."""


def achievable_isolation(
    *, whole: bool, container: bool, apart: bool = False, unknown_passes: bool = False
) -> Isolation:
    """The strongest isolation that a lease can have here.

    ``whole``: every one of its shares is a whole GPU, so nothing stands in front of the driver.
    ``apart``: its process will run in a private mount namespace under a uid that is neither root's
    nor the one that owns the share's files. ``unknown_passes``: functions that the governor's table
    lacks go through it.
    """
    if unknown_passes and not whole:
        return Isolation.ADVISORY
    if not container:
        return Isolation.SOFT if apart and not whole else Isolation.ADVISORY
    return Isolation.FIRM if whole else Isolation.SOFT


def why_advisory(*, tenant: int, owner: int, unmounted: str | None) -> str | None:
    """Why a process of uid ``tenant`` is not held, in a governed share whose files belong to ``owner``.

    ``unmounted``: why it has no mount namespace of its own. None: it is held.
    """
    if unmounted is not None:
        return f"by its library path alone, without a mount namespace ({unmounted})"
    if tenant == 0:
        return "its process is root's, who may take the governor's mounts away"
    if tenant == owner:
        return f"its process has the uid of the share's files, {owner}, and may change them"
    return None
