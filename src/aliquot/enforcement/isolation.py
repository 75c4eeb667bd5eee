"""How strongly a lease can be held, told honestly.

A governed share is held by a library in the tenant's own process. In a container every usual name
of the driver leads to it and the tenant cannot unmount it: `soft`. It is not more than that,
because the driver's own file must be readable in there too, and a program that goes looking for
it, or brings its own, or speaks to the device itself, is not stopped. As a bare process the tenant
only needs another LD_LIBRARY_PATH: `advisory`.

A whole GPU in a container is held by the kernel: the container has the device node of its card
(or the folder of its software GPU) and no other, and the device cgroup and the mount namespace
are nothing that the tenant can change. Nobody else is on the card, so there is nothing within it
to hold. That is `firm` and not `hard`: the control nodes and the driver in the kernel are common
to all cards. (`--privileged` would undo it; injection refuses it by name.) A whole GPU as a bare
process sees every other card as well: `advisory`.
"""

from aliquot.model import Isolation


def achievable_isolation(*, whole: bool, container: bool) -> Isolation:
    """The strongest isolation that a lease can have here.

    ``whole``: every one of its shares is a whole GPU, so nothing stands in front of the driver.
    """
    if not container:
        return Isolation.ADVISORY
    return Isolation.FIRM if whole else Isolation.SOFT
