"""Running a program of ours in a container that is there already."""

from collections.abc import Sequence
from pathlib import Path

from aliquot.injection.asking import ask, last_words
from aliquot.injection.engine import Client
from aliquot.model import AliquotError, Reason


def copy_into(client: Client, container: str, files: Sequence[Path]) -> tuple[str, ...]:
    """Put ``files`` at the top of the container's own tree; their paths in there.

    The top is the one folder that every container has. Where the engine cannot copy, the container's
    own shell takes the file in: newer Docker engines mount everything anew to copy, and fail where one
    mount lies in another that is read-only, as a share's do.
    Raises AliquotError(FAILED) where neither goes, as for a container whose tree cannot be written.
    """
    inside = tuple(f"/{file.name}" for file in files)
    for file, path in zip(files, inside, strict=True):
        status, said, complaint = ask([*client.command, "cp", str(file), f"{container}:{path}"])
        if status != 0 and not _taken_in(client, container, file, path):
            raise AliquotError(
                Reason.FAILED,
                f"{client.kind.value} cannot copy {file.name} into container {container[:12]}: "
                f"{last_words(complaint, said)}",
                facts=["a container with a read-only tree takes it as a mount when it is started"],
                next=[
                    (
                        f"aliquot run --gpu 1/4 -- {client.kind.value} run -v {file.parent}:/verify:ro IMAGE",
                        f"and in it /verify/{file.name}",
                    )
                ],
            )
    return inside


def _taken_in(client: Client, container: str, file: Path, path: str) -> bool:
    take = ["sh", "-c", 'cat >"$1" && chmod 755 "$1"', "sh", path]
    with file.open("rb") as reading:
        status, _, _ = ask(
            [*client.command, "exec", "--interactive", "--user", "0", container, *take], reading=reading
        )
    return status == 0


def execute_inside(
    client: Client, container: str, words: Sequence[str], *, user: str | None = None, timeout: float
) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of ``words`` in a running container, as its own user or ``user``."""
    as_user = ["--user", user] if user is not None else []
    return ask([*client.command, "exec", *as_user, container, *words], timeout=timeout)
