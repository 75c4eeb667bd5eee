"""By CDI or by plain options: where the user's own mounts would hide what CDI brings."""

import shlex
from collections.abc import Callable

import pytest

from aliquot.injection import Engine, container_command, takes_cdi
from aliquot.model import Edits, Mount

MakeEngine = Callable[..., Engine]
FOLDERS = ("/etc/cdi", "/var/run/cdi")
EDITS = Edits(
    mounts=(
        Mount("/s/limits", "/run/aliquot/share/limits"),
        Mount("/s/lib", "/usr/lib64/libcuda.so.1"),
    )
)


def by_cdi(line: str, engine: Engine) -> bool:
    command = container_command(shlex.split(line))
    assert command is not None
    return takes_cdi(command, engine=engine, edits=EDITS)


@pytest.mark.parametrize(
    "option",
    [
        "--tmpfs /run",
        "--tmpfs /run:size=1m",
        "--tmpfs=/run/aliquot/",
        "-v /x:/usr/lib64",
        "-v /x:/usr:ro",
        "-v named:/usr/lib64/",
        "-v /usr",
        "--mount type=tmpfs,target=/run",
        "--mount type=volume,source=v,dst=/usr/lib64",
        "--volumes-from other",
    ],
)
def test_docker_gets_plain_options_where_the_user_mounts_something_above(
    option: str, engine: MakeEngine
) -> None:
    assert not by_cdi(f"docker run {option} app", engine(cdi_folders=FOLDERS))
    assert by_cdi(f"podman run {option} app", engine("podman", cdi_folders=FOLDERS))


@pytest.mark.parametrize(
    "option", ["", "--tmpfs /tmp", "-v /x:/usr/lib6", "-v /x:/run/aliquot/shared", "-v /x:/data"]
)
def test_docker_with_cdi_takes_it_otherwise(option: str, engine: MakeEngine) -> None:
    assert by_cdi(f"docker run {option} app", engine(cdi_folders=FOLDERS))


def test_an_engine_without_cdi_never_takes_it(engine: MakeEngine) -> None:
    assert not by_cdi("docker run app", engine())
