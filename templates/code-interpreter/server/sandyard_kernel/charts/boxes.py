"""Boxes and whiskers.

Once drawn a box is nothing but lines, so the numbers are noted when it is drawn.
"""

import functools

from ..imports import when_imported
from ..plain import number
from .axes import labels_of

NOTED = "_sandyard_boxes"


def watch() -> None:
    """Begins to note as soon as the code has imported matplotlib."""
    when_imported("matplotlib.axes._axes", patch)


def patch(module) -> None:
    bxp = module.Axes.bxp

    @functools.wraps(bxp)
    def noting(self, bxpstats, *arguments, **options):
        stats = list(bxpstats)
        drawn = bxp(self, stats, *arguments, **options)
        setattr(self, NOTED, [*getattr(self, NOTED, ()), (stats, drawn)])
        return drawn

    module.Axes.bxp = noting


def extract(axes) -> dict | None:
    elements: dict = {}
    children = set(axes.get_children())
    for stats, drawn in getattr(axes, NOTED, ()):
        # Axes can be cleared and drawn on again.
        if not children.issuperset(drawn["medians"]):
            continue
        for position, box in enumerate(stats):
            # Drawn twice in the same place, for a second colour, is still one box.
            elements[place_of(drawn, position)] = element(box, position)
    if not elements:
        return None
    return {"type": "box_and_whisker", **labels_of(axes), "elements": list(elements.values())}


def place_of(drawn: dict, position: int) -> tuple:
    x, _ = drawn["medians"][position].get_data()
    return (position, *x)


def element(box: dict, position: int) -> dict:
    return {
        "label": str(box.get("label") or position + 1),
        "min": number(float(box["whislo"])),
        "first_quartile": number(float(box["q1"])),
        "median": number(float(box["med"])),
        "third_quartile": number(float(box["q3"])),
        "max": number(float(box["whishi"])),
        "outliers": [number(float(value)) for value in box.get("fliers", ())],
    }
