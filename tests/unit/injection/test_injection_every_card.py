"""What would hand every card to a container: refused by name, or neutralised and said."""

import shlex
from collections.abc import Callable

import pytest

from aliquot.injection import Engine, Rewritten, container_command, rewrite
from aliquot.model import AliquotError, Reason, Severity

MakeEngine = Callable[..., Engine]


def rewritten(line: str, engine: Engine, image_env: tuple[str, ...] | None = None) -> Rewritten:
    command = container_command(shlex.split(line))
    assert command is not None
    own = ("/var/lib/aliquot", "/run/aliquot")
    return rewrite(command, engine=engine, insertion=("--SHARE",), image_env=image_env, own_folders=own)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--gpus all", "whole cards"),
        ("--gpus=1", "whole cards"),
        ("--gpus '\"device=0\"'", "whole cards"),
        ("--privileged", "every device"),
        ("--privileged=true", "every device"),
        ("--runtime=nvidia", "by itself"),
        ("--runtime nvidia-cdi", "by itself"),
        ("--runtime /usr/bin/nvidia-container-runtime", "by itself"),
        ("--runtime gpu", "by itself"),
        ("--device nvidia.com/gpu=all", "whole cards"),
        ("--device=nvidia.com/gpu=0", "whole cards"),
        ("--device runtime.nvidia.com/gpu=0", "whole cards"),
        ("--device amd.com/gpu=all", "whole cards"),
        ("--device aliquot.dev/share=other", "one share"),
        ("--device /dev/nvidia0", "device node"),
        ("--device /dev/nvidia-uvm:/dev/nvidia-uvm:rwm", "device node"),
        ("--device=//dev/./nvidiactl", "device node"),
        ("--device /dev/dri", "device node"),
        ("--device /dev/dri/renderD128", "device node"),
        ("--device /dev/kfd", "device node"),
        ("--device /dev", "every device"),
        ("--device /dev/fuse,/dev/nvidia0", "device node"),
        ("--device-cgroup-rule 'c 195:* rwm'", "make a card's device node"),
        ("--device-cgroup-rule 'c *:* rwm'", "make a card's device node"),
        ("--device-cgroup-rule 'a *:* rwm'", "make a card's device node"),
        ("-v /dev:/dev", "every card's device node"),
        ("-v /:/host:ro", "every card's device node"),
        ("-v/dev/nvidia0:/dev/nvidia0", "every card's device node"),
        ("--volume=/dev/../dev/:/hostdev", "every card's device node"),
        ("--mount type=bind,source=/dev,target=/dev", "every card's device node"),
        ("--mount 'type=bind,\"src=/dev/nvidia0\",dst=/x'", "every card's device node"),
        ("-v /dev/null:/var/run/nvidia-container-devices/all", "request for cards"),
        ("--mount type=tmpfs,dst=/run/aliquot/share", "mounts the share at"),
        ("-v /x/limits:/run/aliquot/share/limits", "mounts the share at"),
        ("-v /x/libcuda.so.1:/usr/local/lib/libcuda.so.1", "in front of what holds"),
        ("-v /x:/usr/lib64/libnvidia-ml.so.580.1", "in front of what holds"),
        ("-e NVIDIA_VISIBLE_DEVICES=all", "it names"),
        ("-eNVIDIA_VISIBLE_DEVICES=0", "it names"),
        ("--env=NVIDIA_VISIBLE_DEVICES", "it names"),
        ("--env 'NVIDIA_*'", "it names"),
        ("--env-merge=NVIDIA_VISIBLE_DEVICES=all", "it names"),
        ("--annotation cdi.k8s.io/x=nvidia.com/gpu=all", "request for cards"),
    ],
)
def test_an_option_that_hands_out_cards_is_refused_by_name(option: str, why: str, engine: MakeEngine) -> None:
    with pytest.raises(AliquotError) as raised:
        rewritten(f"docker run --rm {option} app cmd", engine(nvidia_runtimes=frozenset(["gpu"])))
    error = raised.value
    assert error.reason is Reason.GIVES_EVERY_GPU
    assert why in error.message
    assert shlex.split(option)[0].partition("=")[0][:3] in error.message
    assert error.next[0][0] == "aliquot run --gpu SPEC -- docker run --rm app cmd"


def test_every_such_option_is_named_at_once(engine: MakeEngine) -> None:
    with pytest.raises(AliquotError) as raised:
        rewritten("docker run --gpus all -it --privileged -e NVIDIA_VISIBLE_DEVICES=0 app", engine())
    assert len(raised.value.facts) == 3
    assert raised.value.next[0][0] == "aliquot run --gpu SPEC -- docker run -it app"


def test_the_rest_of_a_cluster_of_letters_is_kept_in_the_suggestion(engine: MakeEngine) -> None:
    with pytest.raises(AliquotError) as raised:
        rewritten("docker run -ite NVIDIA_VISIBLE_DEVICES=0 -dv/dev:/dev app", engine())
    assert raised.value.next[0][0] == "aliquot run --gpu SPEC -- docker run -it -d app"


@pytest.mark.parametrize(
    "option",
    [
        "--privileged=false",
        "--device /dev/fuse",
        "--device vendor.com/net=eth0",
        "--device-cgroup-rule 'c 10:229 rwm'",
        "-v /dev/shm:/dev/shm",
        "-v /data:/dev/data",
        "-v devices:/x",
        "-v /devel:/x",
        "--mount type=volume,source=/dev,target=/x",
        "-e NVIDIA_VISIBLE_DEVICES=void",
        "-e CUDA_VISIBLE_DEVICES=0",
        "-e 'MY_*'",
        "--runtime runsc",
        "--annotation a=b",
    ],
)
def test_what_only_looks_like_it_is_kept(option: str, engine: MakeEngine) -> None:
    result = rewritten(f"docker run {option} app", engine())
    assert result.argv == ("docker", "run", "--SHARE", *shlex.split(option), "app")
    assert result.notices == ()


def test_a_default_runtime_of_nvidias_is_replaced_and_said(engine: MakeEngine) -> None:
    nvidia = engine(default_runtime="nvidia", nvidia_runtimes=frozenset(["nvidia"]))
    result = rewritten("docker run -it app", nvidia)
    assert result.argv == ("docker", "run", "--runtime", "runc", "--SHARE", "-it", "app")
    assert [notice.code for notice in result.notices] == ["default-runtime-neutralised"]


def test_a_runtime_that_the_user_chose_is_kept_where_nvidias_is_the_default(engine: MakeEngine) -> None:
    nvidia = engine(default_runtime="nvidia", nvidia_runtimes=frozenset(["nvidia"]))
    assert rewritten("docker run --runtime runsc app", nvidia).argv[:3] == ("docker", "run", "--SHARE")


def test_a_default_runtime_of_nvidias_with_no_other_is_refused(engine: MakeEngine) -> None:
    only = engine(
        "podman", default_runtime="nvidia", nvidia_runtimes=frozenset(["nvidia"]), plain_runtime=None
    )
    with pytest.raises(AliquotError, match="default runtime") as raised:
        rewritten("podman run app", only)
    assert raised.value.reason is Reason.GIVES_EVERY_GPU


def test_an_image_that_asks_for_cards_is_said(engine: MakeEngine) -> None:
    result = rewritten("docker run app", engine(), ("PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all"))
    assert [(notice.code, notice.severity) for notice in result.notices] == [
        ("image-neutralised", Severity.INFO)
    ]
    assert rewritten("docker run app", engine(), ("PATH=/bin", "NVIDIA_VISIBLE_DEVICES=void")).notices == ()
    assert rewritten("docker run app", engine(), None).notices == ()


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--cap-add SYS_ADMIN", "remount its limits"),
        ("--cap-add=CAP_SYS_ADMIN", "remount its limits"),
        ("--cap-add all", "remount its limits"),
        ("--cap-add NET_ADMIN,SYS_ADMIN", "remount its limits"),
        ("--cap-add SYS_PTRACE", "other tenants"),
        ("--pid=host", "other tenants"),
        ("-v /var/run/docker.sock:/var/run/docker.sock", "without a share"),
        ("-v /var/lib:/v", "/var/lib/aliquot"),
        ("-v /run/aliquot/shares:/s", "own files"),
        ("--mount type=bind,src=/run,dst=/r", "/run/aliquot"),
        ("-v /var/run/:/r", "/run/aliquot"),
        ("-v /var/lib/aliquot/book.sqlite:/b", "/var/lib/aliquot"),
    ],
)
def test_what_weakens_the_share_is_warned_of(option: str, why: str, engine: MakeEngine) -> None:
    result = rewritten(f"docker run {option} app", engine())
    assert [notice.severity for notice in result.notices] == [Severity.WARNING]
    assert why in result.notices[0].text
    assert result.argv[-2 - len(shlex.split(option)) :][1:-1] == tuple(shlex.split(option))
