"""Pies: each wedge with its angle."""

from .axes import label_of


def extract(axes) -> dict | None:
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    if not wedges:
        return None
    return {"type": "pie", "elements": [element(wedge) for wedge in wedges]}


def element(wedge) -> dict:
    # matplotlib keeps shares as 32-bit floats: the digits that are noise are cut.
    angle = round(abs(float(wedge.theta2) - float(wedge.theta1)), 3)
    return {"label": label_of(wedge), "angle": angle, "radius": float(wedge.r)}
