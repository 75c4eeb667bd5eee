"""The words that tell a command that starts a container from any other.

Apart from ``command_line``, which reads the rest of such a command: most commands are none.
"""

VERBS = ("run", "create")
CLIENTS = {"podman": "podman", "podman-remote": "podman", "docker": "docker"}
"""Names of clients, and the kind of engine that each speaks to."""
COMPOSE_CLIENTS = ("docker-compose", "podman-compose")
OTHER_CLIENTS = ("nerdctl", "ctr", "crictl", "buildah", "lxc", "apptainer", "singularity")
WRAPPERS = ("sudo", "doas", "env", "nice", "nohup", "setsid", "time", "timeout", "stdbuf", "ionice")
