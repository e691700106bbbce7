"""A figure's chart: that of its axes, or all of them together."""

from IPython.core.formatters import BaseFormatter
from traitlets import Unicode

from . import bars, boxes, pies, points
from .axes import labels_of, text_or_none

CHART = "application/vnd.sandyard.chart+json"
# In this order: bars with a line through them are bars, boxes consist of lines.
KINDS = (pies, boxes, bars, points)


class ChartFormatter(BaseFormatter):
    """Handles figures itself: matplotlib's inline backend drops formatters that were registered for them."""

    format_type = Unicode(CHART)

    def __call__(self, rendered) -> dict | None:
        kinds = ((kind.__module__, kind.__name__) for kind in type(rendered).__mro__)
        return chart_or_none(rendered) if ("matplotlib.figure", "Figure") in kinds else None


def formatter(shell) -> ChartFormatter:
    boxes.watch()
    return ChartFormatter(parent=shell.display_formatter)


def chart_or_none(figure) -> dict | None:
    """The chart, or nothing: a drawing we cannot read is still a picture, and no reason to disturb the code."""
    try:
        return chart(figure)
    except Exception:
        return None


def chart(figure) -> dict | None:
    charts = [chart_of_axes(axes) for axes in figure.axes if axes.get_visible() and axes.get_label() != "<colorbar>"]
    if len(charts) < 2:
        return charts[0] if charts else None
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
    return {"type": "superchart", "title": text_or_none(title), "elements": charts}


def chart_of_axes(axes) -> dict:
    title = text_or_none(axes.get_title())
    for kind in KINDS:
        if found := kind.extract(axes):
            return {"title": title, **found}
    return {"type": "unknown", "title": title, **labels_of(axes), "elements": []}
