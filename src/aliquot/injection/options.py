"""Which options of the engines' clients take a value: needed to find the image among the words.

Taken from ``--help`` of Docker 20.10, 28.2 and Podman 4.3, and from the manuals of Docker 29 and
Podman 5; a contract test compares the tables with the clients that are installed. An option that
a table lacks must be written ``--option=value``: guessing could take its value for the image.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aliquot.injection.engine import EngineKind


@dataclass(frozen=True, slots=True)
class OptionTable:
    valued: frozenset[str]
    flags: frozenset[str]
    short: Mapping[str, str]
    """Letter to long name."""
    aliases: Mapping[str, str]
    """Other spellings that a client takes, to the name that is in its help."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMMON_VALUED = _words("""
    add-host annotation attach blkio-weight blkio-weight-device cap-add cap-drop cgroup-parent cgroupns
    cidfile cpu-period cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-cpus cpuset-mems
    detach-keys device device-cgroup-rule device-read-bps device-read-iops device-write-bps
    device-write-iops dns dns-option dns-search entrypoint env env-file expose gpus group-add health-cmd
    health-interval health-retries health-start-period health-timeout hostname ip ip6 ipc label label-file
    log-driver log-opt mac-address memory memory-reservation memory-swap memory-swappiness mount name
    network network-alias oom-score-adj pid pids-limit platform publish pull restart runtime security-opt
    shm-size stop-signal stop-timeout storage-opt sysctl tmpfs ulimit user userns uts volume volumes-from
    workdir
""")
_COMMON_FLAGS = _words("""
    detach disable-content-trust help init interactive no-healthcheck oom-kill-disable privileged
    publish-all quiet read-only rm sig-proxy tty
""")
_SHORT = {
    "a": "attach", "c": "cpu-shares", "d": "detach", "e": "env", "h": "hostname", "i": "interactive",
    "l": "label", "m": "memory", "p": "publish", "P": "publish-all", "q": "quiet", "t": "tty",
    "u": "user", "v": "volume", "w": "workdir",
}  # fmt: skip
_ALIASES = {"net": "network", "net-alias": "network-alias", "dns-opt": "dns-option"}

_PODMAN_GLOBAL_VALUED = _words("""
    cdi-spec-dir cgroup-manager config conmon connection cpu-profile database-backend db-backend
    default-mounts-file events-backend hooks-dir identity imagestore log-level max-workers memory-profile
    module namespace network-backend network-cmd-path network-config-dir out pull-option
    registries-conf root runroot runtime runtime-flag ssh storage-driver storage-opt tls-ca tls-cert
    tls-key tmpdir url volumepath
""")
_PODMAN_GLOBAL_FLAGS = _words("help noout remote syslog trace transient-store version")

RUN_OPTIONS: Mapping[EngineKind, OptionTable] = {
    EngineKind.DOCKER: OptionTable(
        valued=_COMMON_VALUED | _words("""
            cpu-count cpu-percent domainname health-start-interval io-maxbandwidth io-maxiops isolation
            kernel-memory link link-local-ip volume-driver
        """),
        flags=_COMMON_FLAGS | {"use-api-socket"},
        short=_SHORT,
        aliases=_ALIASES,
    ),
    EngineKind.PODMAN: OptionTable(
        # Podman takes its options of before the verb after it as well.
        valued=_COMMON_VALUED | _PODMAN_GLOBAL_VALUED | _words("""
            arch authfile cert-dir cgroup-conf cgroups chrootdirs conmon-pidfile creds decryption-key
            env-merge gidmap group-entry health-log-destination health-max-log-count health-max-log-size
            health-on-failure health-startup-cmd health-startup-interval health-startup-retries
            health-startup-success health-startup-timeout hosts-file hostuser image-volume init-ctr
            init-path os passwd-entry personality pidfile pod pod-id-file preserve-fd preserve-fds rdt-class
            requires retry retry-delay sdnotify seccomp-policy secret shm-size-systemd subgidname subuidname
            systemd timeout tz uidmap umask unsetenv variant
        """),
        flags=_COMMON_FLAGS | (_PODMAN_GLOBAL_FLAGS - {"version"}) | _words("""
            env-host http-proxy no-hostname no-hosts passwd read-only-tmpfs replace rmi rootfs tls-verify
            unsetenv-all
        """),
        short=_SHORT,
        aliases=_ALIASES | {
            "healthcheck-command": "health-cmd",
            "healthcheck-interval": "health-interval",
            "healthcheck-retries": "health-retries",
            "healthcheck-start-period": "health-start-period",
            "healthcheck-timeout": "health-timeout",
        },
    ),
}  # fmt: skip
"""Of ``run`` and ``create``."""

GLOBAL_OPTIONS: Mapping[EngineKind, OptionTable] = {
    EngineKind.DOCKER: OptionTable(
        valued=_words("config context host log-level tlscacert tlscert tlskey"),
        flags=_words("debug help tls tlsverify version"),
        short={"c": "context", "D": "debug", "H": "host", "l": "log-level", "v": "version"},
        aliases={},
    ),
    EngineKind.PODMAN: OptionTable(
        valued=_PODMAN_GLOBAL_VALUED,
        flags=_PODMAN_GLOBAL_FLAGS,
        short={"c": "connection", "r": "remote", "v": "version", "h": "help"},
        aliases={},
    ),
}
"""Of the client, before the verb."""
