"""The data behind matplotlib's figures, in the shapes of the SDKs' chart classes.

matplotlib is imported by the code that draws, never from here: what this package needs of it is there by then.
"""

from . import chart_of
from .chart_of import CHART

__all__ = ["CHART", "chart_of"]
