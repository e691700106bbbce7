"""Bars, standing or lying, in one group or several."""

from ..plain import number
from .axes import label_of, labels_of, scale_of


def extract(axes) -> dict | None:
    groups = [each for each in axes.containers if type(each).__name__ == "BarContainer" and len(each.patches)]
    if not groups:
        return None
    elements = []
    for count, group in enumerate(groups, 1):
        name = label_of(group) or f"Group {count}"
        elements += [bar(axes, patch, name, lies(group)) for patch in group.patches]
    return {"type": "bar", **labels_of(axes), "elements": elements}


def lies(group) -> bool:
    return getattr(group, "orientation", None) == "horizontal"


def bar(axes, patch, group: str, is_lying: bool) -> dict:
    if is_lying:
        axis, position, value = axes.yaxis, patch.get_y() + patch.get_height() / 2, patch.get_width()
    else:
        axis, position, value = axes.xaxis, patch.get_x() + patch.get_width() / 2, patch.get_height()
    return {"label": label_at(axis, position), "group": group, "value": number(float(value))}


def label_at(axis, position: float) -> str:
    """What is written under a bar. Bars of a group stand beside their tick, so it is the nearest one that counts."""
    has_names = scale_of(axis) in ("categorical", "datetime") or type(axis.get_major_locator()).__name__ == "FixedLocator"
    ticks = [(abs(at - position), label.get_text()) for at, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels())]
    if has_names and ticks:
        distance, text = min(ticks)
        if distance <= 0.5 and text:
            return text
    return f"{position:g}"
