"""How a share gets in: from a lease to the edits of a process or a container, and their forms.

What lives here: what must change for a program to find its share (``process_edits``,
``container_edits``), and the ways to say it (a child's environment, a CDI specification, options
of an engine's ``run``, text to paste), reading and rewriting the user's own container command,
and asking an engine what it is. What may be imported: ``aliquot.model`` and the standard library.
What never: another stage; starting the user's program (``node`` does that).

Pure, but for the functions that say so: ``probe``, ``containers_of`` and ``image_environment``
run an engine's client; ``write_cdi_spec``, ``remove_cdi_spec``, ``listed_cdi_specs`` and
``writable_cdi_folder`` touch a CDI folder.

Names are imported when they are first used: a process share, the common case, needs no engine.
"""

from typing import TYPE_CHECKING

from aliquot.deferring import deferred

if TYPE_CHECKING:
    from aliquot.injection.cdi import (
        cdi_device,
        cdi_spec,
        listed_cdi_specs,
        remove_cdi_spec,
        spec_path,
        writable_cdi_folder,
        write_cdi_spec,
    )
    from aliquot.injection.command_line import ContainerCommand
    from aliquot.injection.containers import ContainerState, containers_of, image_environment
    from aliquot.injection.engine import Client, Engine, EngineKind
    from aliquot.injection.engine_flags import LABEL, cdi_flags, flags
    from aliquot.injection.environment import child_environment
    from aliquot.injection.for_containers import container_edits
    from aliquot.injection.for_processes import private_edits, process_edits
    from aliquot.injection.insertion import takes_cdi
    from aliquot.injection.inside import copy_into, execute_inside
    from aliquot.injection.probing import probe
    from aliquot.injection.recognise import container_command
    from aliquot.injection.rewriting import Rewritten, image_of, rewrite
    from aliquot.injection.share_folder import TENANT_SHARE, ShareFolder
    from aliquot.injection.share_mounts import GOVERNED, PAST_THE_GOVERNOR
    from aliquot.injection.text_forms import Forms, forms

__getattr__ = deferred(
    __name__,
    {
        "cdi": "cdi_device cdi_spec listed_cdi_specs remove_cdi_spec spec_path "
        "writable_cdi_folder write_cdi_spec",
        "command_line": "ContainerCommand",
        "containers": "ContainerState containers_of image_environment",
        "engine": "Client Engine EngineKind",
        "engine_flags": "LABEL cdi_flags flags",
        "environment": "child_environment",
        "for_containers": "container_edits",
        "for_processes": "private_edits process_edits",
        "insertion": "takes_cdi",
        "inside": "copy_into execute_inside",
        "probing": "probe",
        "recognise": "container_command",
        "rewriting": "Rewritten image_of rewrite",
        "share_folder": "TENANT_SHARE ShareFolder",
        "share_mounts": "GOVERNED PAST_THE_GOVERNOR",
        "text_forms": "Forms forms",
    },
)

__all__ = [
    "GOVERNED",
    "LABEL",
    "PAST_THE_GOVERNOR",
    "TENANT_SHARE",
    "Client",
    "ContainerCommand",
    "ContainerState",
    "Engine",
    "EngineKind",
    "Forms",
    "Rewritten",
    "ShareFolder",
    "cdi_device",
    "cdi_flags",
    "cdi_spec",
    "child_environment",
    "container_command",
    "container_edits",
    "containers_of",
    "copy_into",
    "execute_inside",
    "flags",
    "forms",
    "image_environment",
    "image_of",
    "listed_cdi_specs",
    "private_edits",
    "probe",
    "process_edits",
    "remove_cdi_spec",
    "rewrite",
    "spec_path",
    "takes_cdi",
    "writable_cdi_folder",
    "write_cdi_spec",
]
