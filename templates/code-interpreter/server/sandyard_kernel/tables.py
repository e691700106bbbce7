"""Tables as data: each column with its values."""

from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

from .plain import plain

DATA = "application/vnd.sandyard.data+json"
# More is a file, not a result; the text and the HTML show the table's ends anyway.
MAX_CELLS = 200_000


class TableFormatter(BaseFormatter):
    """Asks objects for their data."""

    format_type = Unicode(DATA)
    print_method = ObjectName("_repr_data_")
    _return_type = dict


def formatter(shell) -> TableFormatter:
    made = TableFormatter(parent=shell.display_formatter)
    # The name of the module is what a class says of itself; it changed with pandas 3.
    for module in ("pandas", "pandas.core.frame"):
        made.for_type_by_name(module, "DataFrame", columns)
    for module in ("pandas", "pandas.core.series"):
        made.for_type_by_name(module, "Series", series)
    return made


def columns(frame) -> dict | None:
    """The columns of a data frame by name."""
    if frame.size > MAX_CELLS:
        return None
    return {name_of(name): [plain(value) for value in frame.iloc[:, position]] for position, name in enumerate(frame.columns)}


def series(values) -> dict | None:
    """One column; it may have no name."""
    if values.size > MAX_CELLS:
        return None
    return {name_of(0 if values.name is None else values.name): [plain(value) for value in values]}


def name_of(name) -> str:
    """A column's name as a key; names may be tuples."""
    return name if isinstance(name, str) else str(plain(name))
