"""``aliquot version``; without options ``main`` answers before this file is read."""

from aliquot.cli.options import form_option
from aliquot.cli.program import command as declare


@declare(
    "version", examples=[("aliquot version", ""), ("aliquot version -o json", "with Python and platform")]
)
@form_option("json", "yaml")
def command(form: str) -> None:
    import platform

    from aliquot import __version__
    from aliquot.cli.output.documents import as_json, as_yaml, document
    from aliquot.cli.output.streams import out, out_exactly

    if form == "text":
        out(f"aliquot {__version__}")
        return
    body = document(
        "Version",
        {
            "version": __version__,
            "python": platform.python_version(),
            "system": platform.system(),
            "machine": platform.machine(),
        },
    )
    out_exactly(as_json(body) if form == "json" else as_yaml(body))
