"""The user's own command lines, as they are really typed: where the share's options go in.

``|`` marks the place, ``<image>`` follows what is found to be the image.
"""

import shlex
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.injection import Client, Engine, EngineKind, container_command, image_of, rewrite
from aliquot.injection.command_line import read_options
from aliquot.injection.options import GLOBAL_OPTIONS, RUN_OPTIONS
from aliquot.model import AliquotError, Reason

MakeEngine = Callable[..., Engine]
SHARE = ("--device", "aliquot.dev/share=abcde")

LINES = [
    # line with the place marked, image
    ("docker run | ubuntu", "ubuntu"),
    ("docker run | -it ubuntu bash", "ubuntu"),
    ("docker run | --rm -it ubuntu bash -c 'docker run inner'", "ubuntu"),
    ("docker run | -dit --name web -p 8080:80 nginx", "nginx"),
    ("docker run | -d -p8080:80 -v /data:/data:ro -e A=B -eC=D --env=E=F nginx:latest", "nginx:latest"),
    ("docker run | -e KEY nginx", "nginx"),
    ("docker run | -itv $PWD:/w -w /w python:3.12 python train.py --privileged", "python:3.12"),
    ("docker run | -itu 1000:1000 python:3.12", "python:3.12"),
    ("docker run | -u=1000 python", "python"),
    ("docker run | --user 1000 --workdir=/w python", "python"),
    ("docker run | -t=false -i=true busybox", "busybox"),
    ("docker run | --rm=true --privileged=false busybox", "busybox"),
    ("docker run | -- busybox -it", "busybox"),
    ("docker run | --rm -- busybox -- sh", "busybox"),
    ("docker container run | --rm alpine", "alpine"),
    ("docker create | --name x alpine sleep 1", "alpine"),
    ("docker container create | alpine", "alpine"),
    ("/usr/bin/docker run | alpine", "alpine"),
    ("docker -H unix:///run/user/1000/docker.sock run | alpine", "alpine"),
    ("docker -Hunix:///x.sock run | alpine", "alpine"),
    ("docker --host=unix:///x.sock --tls=false run | alpine", "alpine"),
    ("docker --context container container run | alpine", "alpine"),
    ("docker -c run run | alpine", "alpine"),
    ("docker -D -l debug --config /tmp/c run | alpine", "alpine"),
    ("docker run | --restart unless-stopped --memory 4g --cpus 2 --shm-size=8g vllm/vllm-openai --model x",
     "vllm/vllm-openai"),
    ("docker run | --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 nvcr.io/nvidia/pytorch:25.01-py3",
     "nvcr.io/nvidia/pytorch:25.01-py3"),
    ("docker run | --mount type=bind,src=/a,dst=/b --mount type=tmpfs,target=/tmp app", "app"),
    ("docker run | --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges app", "app"),
    ("docker run | --net host --dns-opt x --net-alias y app", "app"),
    ("docker run | --log-driver json-file --log-opt max-size=1m --label a=b -l c=d app", "app"),
    ("docker run | --health-cmd 'curl -f x' --health-start-interval 1s --no-healthcheck app", "app"),
    ("docker run | --entrypoint '' --init --stop-signal SIGINT --stop-timeout 3 app", "app"),
    ("docker run | --pull always --platform linux/amd64 --quiet app", "app"),
    ("docker run | --sig-proxy=false -a stdout -a stderr app", "app"),
    ("docker run | --new-option=value app", "app"),
    ("docker run | -h host -m 1g -c 512 app", "app"),
    ("docker run | -P -q app@sha256:0123", "app@sha256:0123"),
    ("docker run | --use-api-socket app", "app"),
    ("docker run | --runtime runsc app", "app"),
    ("docker run | --runtime=io.containerd.runc.v2 app", "app"),
    ("docker run | --env-file prod.env --gpus-note=x app", "app"),
    ("docker run | -e NVIDIA_VISIBLE_DEVICES=void app", "app"),
    ("docker run | -e NVIDIA_DRIVER_CAPABILITIES=compute,utility app", "app"),
    ("docker run | --device /dev/fuse --device=/dev/snd:/dev/snd:rw app", "app"),
    ("docker run | -v data:/dev/shm -v /dev/shm:/dev/shm app", "app"),
    ("docker run | app --gpus all --privileged --runtime=nvidia", "app"),
    ("podman run | --rm -it docker.io/library/python", "docker.io/library/python"),
    ("podman --cgroup-manager=cgroupfs run | --runtime runc --network none app", "app"),
    ("podman --cgroup-manager cgroupfs --root /r --runroot /rr --storage-opt a=b run | app", "app"),
    ("podman --log-level=debug --syslog container run | app", "app"),
    ("podman run | --pod mypod --replace --name x --userns keep-id app", "app"),
    ("podman run | --userns=keep-id:uid=1 --group-add keep-groups --security-opt label=disable app", "app"),
    ("podman run | --env-host --http-proxy=false --tz local --umask 0022 app", "app"),
    ("podman run | --secret s,type=env -d --sdnotify conmon --systemd always app", "app"),
    ("podman run | --rmi --tls-verify=false --authfile /a --creds u:p --retry 3 app", "app"),
    ("podman run | --health-on-failure kill --health-startup-cmd x --gidmap 0:0:1 --uidmap 0:0:1 app", "app"),
    ("podman run | --healthcheck-command x app", "app"),
    ("podman run | --rootfs /srv/root sh", None),
    ("podman run | --log-level debug --url unix:///x app", "app"),
    ("podman create | --init-ctr once --pod p app", "app"),
    ("podman-remote run | app", "app"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "image"), LINES)
def test_the_options_go_in_after_the_verb_and_the_image_is_found(
    marked: str, image: str | None, engine: MakeEngine
) -> None:
    words = shlex.split(marked)
    at = words.index("|")
    command = container_command(words[:at] + words[at + 1 :])
    assert command is not None
    asked = engine(command.kind.value)
    assert rewrite(command, engine=asked, insertion=SHARE).argv == (*words[:at], *SHARE, *words[at + 1 :])
    assert image_of(command, engine=asked) == image


def test_the_clients_own_options_are_what_chooses_the_engine() -> None:
    command = container_command(shlex.split("docker --context container -H unix:///x container run -it app"))
    assert command is not None
    assert command.client == ("docker", "--context", "container", "-H", "unix:///x")


@pytest.mark.parametrize(
    "line",
    [
        "python train.py",
        "bash -c 'docker run x'",
        "./docker-like run x",
        "sudo ls",
        "env A=B python x",
        "timeout 5 which docker",
    ],
)
def test_a_program_of_this_machine_is_no_container(line: str) -> None:
    assert container_command(shlex.split(line)) is None


@pytest.mark.parametrize(
    ("line", "why", "typed"),
    [
        ("docker compose up -d", "from a file", "aliquot lease --gpu SPEC"),
        ("docker-compose up", "from a file", "aliquot lease --gpu SPEC"),
        ("podman-compose up", "from a file", "aliquot lease --gpu SPEC"),
        ("docker --context x compose run app", "from a file", "aliquot lease --gpu SPEC"),
        ("podman kube play pod.yaml", "from elsewhere", "aliquot lease --gpu SPEC"),
        ("docker start web", "keeps the share", "docker start web"),
        ("docker container start web", "keeps the share", "docker container start web"),
        ("podman restart web", "keeps the share", "podman restart web"),
        ("docker exec -it web bash", "in that container's share already", "docker exec -it web bash"),
        ("docker build -t x .", "without a GPU", "docker build -t x ."),
        ("docker buildx build .", "without a GPU", "docker buildx build ."),
        ("docker ps", "`ps` starts no container", "docker ps"),
        ("docker", "starts no container", "docker"),
        ("docker --version", "starts no container", "docker --version"),
        ("sudo docker run app", "stands before", "sudo aliquot run --gpu SPEC -- docker run app"),
        ("nice -n 5 podman run app", "stands before", "nice -n 5 aliquot run --gpu SPEC -- podman run app"),
        ("env A=B docker run app", "stands before", "env A=B aliquot run --gpu SPEC -- docker run app"),
        ("nerdctl run app", "podman and docker", "aliquot lease --gpu SPEC"),
    ],
)
def test_what_starts_no_container_is_answered_with_what_to_type(line: str, why: str, typed: str) -> None:
    with pytest.raises(AliquotError) as raised:
        container_command(shlex.split(line))
    assert raised.value.reason is Reason.COMMAND_NOT_UNDERSTOOD
    assert why in raised.value.message
    assert raised.value.next[0][0] == typed


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("docker run", "no image"),
        ("docker run -it --rm", "no image"),
        ("docker run --name", "lacks its value"),
        ("docker run -itv", "lacks its value"),
        ("docker run --new-option value app", "`--new-option` is not an option"),
        ("docker run -Z app", "`-Z` is not an option"),
        ("docker run -itZ app", "`-Z` is not an option"),
    ],
)
def test_what_cannot_be_read_is_refused_and_never_guessed(line: str, why: str, engine: MakeEngine) -> None:
    command = container_command(shlex.split(line))
    assert command is not None
    with pytest.raises(AliquotError, match=why) as raised:
        rewrite(command, engine=engine(), insertion=SHARE)
    assert raised.value.reason is Reason.COMMAND_NOT_UNDERSTOOD


def test_an_unknown_option_before_the_verb_is_refused() -> None:
    with pytest.raises(AliquotError, match="`--new-global` is not an option"):
        container_command(["docker", "--new-global", "x", "run", "app"])


def test_no_option_is_both_a_flag_and_valued() -> None:
    for tables in (RUN_OPTIONS, GLOBAL_OPTIONS):
        for table in tables.values():
            assert not table.valued & table.flags
            assert set(table.short.values()) <= table.valued | table.flags
            assert set(table.aliases.values()) <= table.valued | table.flags


def test_a_clients_endpoint_survives_the_book() -> None:
    client = Client(EngineKind.DOCKER, ("/opt/docker dir/docker", "--host", "unix:///x y.sock"))
    assert Client.of("docker", client.endpoint) == client
    plain = Client(EngineKind.PODMAN, ("podman",))
    assert plain.endpoint is None
    assert Client.of("podman", None) == plain


WORDS = st.lists(
    st.sampled_from(
        [
            "-it",
            "--rm",
            "-e",
            "A=B",
            "--name",
            "x",
            "--env=C=D",
            "-p80:80",
            "app",
            "--",
            "-",
            "",
            "-dp",
            "=",
            "--=",
        ]
    ),
    max_size=8,
)


@given(WORDS)
def test_whatever_is_typed_is_read_or_refused_and_every_word_belongs_to_one_option(words: list[str]) -> None:
    try:
        options, at = read_options(words, 0, RUN_OPTIONS[EngineKind.DOCKER])
    except AliquotError:
        return
    covered = {position for option in options for position in range(option.start, option.end)}
    ended = at > 0 and words[at - 1] == "--" and at - 1 not in covered
    assert covered == set(range(at - 1 if ended else at))
