"""What charts of every kind say of their axes."""

import re
from collections.abc import Callable
from functools import partial

from ..plain import plain

# `Time (s)` and `Time [s]`.
UNIT = re.compile(r"[(\[]([^()\[\]]+)[)\]]\s*$")


def text_or_none(text: str) -> str | None:
    return text or None


def labels_of(axes) -> dict:
    """The labels of both axes and the units in them."""
    x, y = axes.get_xlabel(), axes.get_ylabel()
    return {"x_label": text_or_none(x), "y_label": text_or_none(y), "x_unit": unit_in(x), "y_unit": unit_in(y)}


def unit_in(label: str) -> str | None:
    found = UNIT.search(label)
    return found.group(1).strip() if found else None


def label_of(artist) -> str:
    """An artist's label, unless matplotlib made it up."""
    label = str(artist.get_label() or "")
    return "" if label.startswith("_") else label


def scale_of(axis) -> str:
    """The kind of scale: dates and categories first, they too are drawn on a line of numbers."""
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    module = type(converter).__module__
    if module == "matplotlib.category":
        return "categorical"
    if module == "matplotlib.dates" or "pandas.plotting" in module:
        return "datetime"
    return axis.get_scale()


def ticks_of(axis, name: str) -> dict:
    """The ticks that are seen, as values and as texts."""
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels())
    seen = [(position, label.get_text()) for position, label in ticks if low <= position <= high]
    read = reader(axis)
    return {
        f"{name}_ticks": [read(float(position)) for position, _ in seen],
        f"{name}_tick_labels": [text for _, text in seen],
        f"{name}_scale": scale_of(axis),
    }


def reader(axis) -> Callable:
    """Turns the numbers that an axis counts in into what they stand for."""
    scale = scale_of(axis)
    if scale == "categorical":
        names = {position: name for name, position in axis.units._mapping.items()}
        return lambda value: names.get(round(value), coordinate(value))
    if scale == "datetime":
        return partial(moment, getattr(axis, "freq", None))
    return coordinate


def moment(frequency, value: float) -> str:
    """A place on a time axis as a time: pandas counts periods, matplotlib days."""
    if frequency is not None:
        from pandas import Period

        return Period(ordinal=round(value), freq=frequency).to_timestamp().isoformat()
    from matplotlib.dates import num2date

    return num2date(value).replace(tzinfo=None).isoformat()


def coordinate(value):
    """A point's coordinate: numbers as floats, times and categories as texts."""
    value = plain(value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
