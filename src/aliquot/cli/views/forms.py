"""The ways into a lease, as text to paste or to put into a command line."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aliquot.model import LeaseId
    from aliquot.node import Forms

FORMS = ("env", "docker", "podman", "compose")


def form_texts(forms: "Forms") -> dict[str, str]:
    """Each of ``FORMS``; the engines' options on one line, for ``docker run $(…) IMAGE``."""
    return {
        "env": forms.environment,
        "docker": _on_one_line(forms.docker),
        "podman": _on_one_line(forms.podman),
        "compose": forms.compose,
    }


def ways_in(lease: "LeaseId", forms: "Forms") -> list[str]:
    """For people: the environment itself, and of the long ones the short line that uses them."""
    return [
        "",
        "environment",
        *(f"  {line}" for line in forms.environment.splitlines()),
        "docker, podman",
        f"  aliquot run --lease {lease} -- docker run IMAGE",
        f"  docker run $(aliquot show {lease} -o docker) IMAGE",
        f"  podman run $(aliquot show {lease} -o podman) IMAGE",
        "compose, below the name of a service",
        f"  aliquot show {lease} -o compose",
    ]


def _on_one_line(options: str) -> str:
    """Without the backslashes of continued lines, which ``$(…)`` keeps as characters of their own."""
    return " ".join(line.removesuffix("\\").strip() for line in options.splitlines())
