"""One figure of a bench: a tab-separated row ``figure, measured, goal, holds|short``."""

import math


def print_row(figure: str, measured: float, unit: str, goal: str, holds: bool) -> None:
    """Print the row at once; ``measured`` NaN is what could not be measured, and never holds."""
    if math.isnan(measured):
        print(figure, "failed", goal, "short", sep="\t", flush=True)
        return
    print(figure, f"{measured:.3g} {unit}", goal, "holds" if holds else "short", sep="\t", flush=True)
