"""What programs/nvml_nonsense.py is to ask: every function of the table of symbols."""

from __future__ import annotations

import csv
import json

from tests.native.softgpu.machine import ROOT

LEFT_OUT = ("nvmlInit", "nvmlShutdown", "nvmlErrorString")
"""They take no pointer, and rightly succeed."""


def nonsense_questions() -> str:
    """JSON: each function, and whether its first argument is a device."""
    with (ROOT / "native" / "cuda" / "nvml.tsv").open(newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    return json.dumps(
        {
            row["symbol"]: row["parameters"].startswith("nvmlDevice_t")
            for row in rows
            if not row["symbol"].startswith(LEFT_OUT)
        }
    )
