"""A lease in the forms that people paste: a shell, Docker's and Podman's options, Compose."""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aliquot.injection.engine_flags import LABEL, cdi_flags, flags
from aliquot.injection.for_processes import LIBRARY_PATH
from aliquot.model import Edits, LeaseId


@dataclass(frozen=True, slots=True)
class Forms:
    shell: str
    """Lines for ``eval`` in any POSIX shell."""
    docker: str
    podman: str
    compose: str
    """Lines of one service, for a Compose file; indented for below its name."""


def forms(lease_id: LeaseId, *, process: Edits, container: Edits, cdi: bool) -> Forms:
    """Pure. ``cdi``: whether the lease's specification is written where Podman reads it."""
    plain = flags(container, lease_id=lease_id)
    podman = cdi_flags(lease_id) if cdi else plain
    return Forms(
        shell="".join(f"{line}\n" for line in _shell(process)),
        docker=_option_lines(plain),
        podman=_option_lines(podman),
        compose="".join(f"{line}\n" for line in _compose(container, lease_id)),
    )


def _shell(edits: Edits) -> Iterator[str]:
    for name in edits.unset:
        yield f"unset {name}"
    for name, value in edits.env:
        joined = f"${{{LIBRARY_PATH}:+:${LIBRARY_PATH}}}" if name == LIBRARY_PATH else ""
        yield (
            f'export {name}={shlex.quote(value)}"{joined}"'
            if joined
            else f"export {name}={shlex.quote(value)}"
        )


def _option_lines(words: Sequence[str]) -> str:
    """One option a line, each with the backslash that lets the next follow."""
    pairs = [shlex.join(words[at : at + 2]) for at in range(0, len(words), 2)]
    return "".join(f"{pair} \\\n" for pair in pairs)


def _compose(edits: Edits, lease_id: LeaseId) -> Iterator[str]:
    """YAML, with every string in JSON's quotes: an id or a path is then never another type."""
    yield "    labels:"
    yield f"      {LABEL}: {json.dumps(str(lease_id))}"
    yield "    environment:"
    for name, value in edits.env:
        yield f"      {name}: {json.dumps(value)}"
    if edits.device_nodes:
        yield "    devices:"
        for node in edits.device_nodes:
            yield f"      - {json.dumps(f'{node.host_path}:{node.path}')}"
    if edits.mounts:
        yield "    volumes:"
    for mount in edits.mounts:
        fields = {"type": "bind", "source": mount.source, "target": mount.target}
        text = ", ".join(f"{key}: {json.dumps(value)}" for key, value in fields.items())
        read_only = "true" if mount.read_only else "false"
        # create_host_path: Compose makes a folder where the source is missing unless told not to.
        yield f"      - {{{text}, read_only: {read_only}, bind: {{create_host_path: false}}}}"
