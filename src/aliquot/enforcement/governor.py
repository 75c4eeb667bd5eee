"""Where the governor's two libraries lie in the package."""

from pathlib import Path

from aliquot.model import AliquotError, Reason

LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
_FOLDER = Path(__file__).resolve().parent.parent / "_native" / "governor"


def governor_folder(folder: Path = _FOLDER) -> Path:
    """The folder that holds both libraries.

    Raises AliquotError(GOVERNOR_MISSING) where one is not there: a share without its governor
    would not be held, so nothing may start.
    """
    missing = [name for name in LIBRARIES if not (folder / name).is_file()]
    if missing:
        raise AliquotError(
            Reason.GOVERNOR_MISSING,
            f"{' and '.join(missing)} not found in {folder}",
            next=[("pip install --force-reinstall aliquot", "installs the libraries again")],
        )
    return folder
