"""Where the software GPU's driver lies, and how a program finds it."""

from pathlib import Path

from aliquot.model import AliquotError, Reason

LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")

_FOLDER = Path(__file__).parent.parent / "_native" / "softgpu"


def library_folder() -> Path:
    """The folder of the package's own libcuda.so.1 and libnvidia-ml.so.1.

    Raises AliquotError(FAILED) where the native parts were not built.
    """
    missing = [name for name in LIBRARIES if not (_FOLDER / name).is_file()]
    if missing:
        raise AliquotError(
            Reason.FAILED,
            f"the software GPU's {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} "
            f"not in {_FOLDER}: the native parts were not built",
            next=[
                ("make build", "builds them in a checkout"),
                ("pip install --force-reinstall aliquot", "installs a package that has them"),
            ],
        )
    return _FOLDER


def environment(library_folder: Path, *, inherited: str = "") -> dict[str, str]:
    """The variables with which a program started by hand finds the software GPU's driver.

    inherited: what LD_LIBRARY_PATH is now; the folder goes in front of it, once.
    """
    others = [entry for entry in inherited.split(":") if entry and entry != str(library_folder)]
    ptxas = str(library_folder / "ptxas")
    return {
        "LD_LIBRARY_PATH": ":".join([str(library_folder), *others]),
        # Triton translates PTX by a ptxas (the second name from compute capability 9.0 on), and links a
        # helper of its own with a libcuda.so.1 that it asks ldconfig for.
        "TRITON_LIBCUDA_PATH": str(library_folder),
        "TRITON_PTXAS_PATH": ptxas,
        "TRITON_PTXAS_BLACKWELL_PATH": ptxas,
    }
