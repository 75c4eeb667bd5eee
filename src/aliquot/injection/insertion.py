"""Which words to put into the user's command line: the name of a CDI device, or plain options."""

from aliquot.injection.command_line import ContainerCommand, parse_run
from aliquot.injection.engine import Engine, EngineKind
from aliquot.injection.user_mounts import mounted_targets
from aliquot.model import Edits


def takes_cdi(command: ContainerCommand, *, engine: Engine, edits: Edits) -> bool:
    """Whether ``command`` is to get its share by CDI; else by plain options. Pure.

    The newest Docker engine mounts what a CDI specification says first and the user's own mounts
    after it, so that ``-v DIR:/usr/lib64`` or ``--tmpfs /run`` hides the governor or the limits
    (measured on API 1.56; Podman, and Docker's own ``--mount``, go by depth). There the share
    goes in as plain options whenever the user mounts something above it.

    The caller still has to find a folder of ``engine.cdi_folders`` that it may write.
    """
    if not engine.cdi_folders:
        return False
    if engine.kind is EngineKind.PODMAN:
        return True
    options, _ = parse_run(command, engine.kind)
    if any(option.name == "volumes-from" for option in options):
        return False
    above = tuple(f"{target.rstrip('/')}/" for target in mounted_targets(options))
    return not any(f"{mount.target}/".startswith(above) for mount in edits.mounts)
