"""The built libraries: what they export and what they lean on."""

import re
import subprocess

import pytest
from tests.native.governor.shares import Built

from generate_surface import CUDA_TABLE, NVML_TABLE, read_table

LIBRARIES = {"libcuda.so.1": CUDA_TABLE, "libnvidia-ml.so.1": NVML_TABLE}


def _names(built: Built, library: str, *options: str) -> set[str]:
    done = subprocess.run(
        ["nm", "-D", *options, built.governor / library], check=True, capture_output=True, text=True
    )
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("library", LIBRARIES)
def test_it_exports_exactly_the_table(built: Built, library: str) -> None:
    assert _names(built, library, "--defined-only") == set(read_table(LIBRARIES[library]))


@pytest.mark.parametrize("library", LIBRARIES)
def test_it_imports_nothing_that_changes_or_speaks_for_the_tenant_s_process(
    built: Built, library: str
) -> None:
    imported = _names(built, library, "--undefined-only")
    forbidden = re.compile(
        r"umask|signal|sigaction|raise|kill|v?_?exit|atexit|abort|setenv|putenv|unsetenv|chdir|"
        r".*printf.*|puts|fputs|write|fwrite|perror|malloc|realloc|free|system|fork|execv.*|setlocale"
    )
    assert not {name for name in imported if forbidden.fullmatch(name)}


@pytest.mark.parametrize("library", LIBRARIES)
def test_it_has_the_driver_s_soname_and_needs_only_libc(built: Built, library: str) -> None:
    done = subprocess.run(
        ["readelf", "-dlW", built.governor / library], check=True, capture_output=True, text=True
    ).stdout
    assert f"Library soname: [{library}]" in done
    assert set(re.findall(r"Shared library: \[(.*?)\]", done)) <= {"libc.so.6", "ld-linux-x86-64.so.2"}
    assert "BIND_NOW" in done
    assert "GNU_RELRO" in done
    assert re.search(r"GNU_STACK.* RW ", done)
