"""Values as JSON can hold them."""

import math
from datetime import date, datetime, time, timedelta
from numbers import Integral, Real


def plain(value):
    """A number, a text, a truth value, a list, or nothing; whatever else is its text.

    Numbers that are none become nothing: JSON has no word for them.
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain(value.item()) if type(value.item()) is not type(value) else str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return number(float(value))
    if isinstance(value, (list, tuple, set)):
        return [plain(each) for each in value]
    return str(value)


def number(value: float) -> float | None:
    return value if math.isfinite(value) else None
