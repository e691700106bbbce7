"""What ipykernel publishes, as answers: results with their formats, errors."""

from . import images, tables
from .charts import CHART, chart_of

FIELDS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    tables.DATA: "data",
    CHART: "chart",
}
# Base64 of bytes: readers do not expect the line breaks some encoders make.
IN_BASE64 = ("image/png", "image/jpeg", "application/pdf")


def answer(kind: str, content: dict) -> dict | None:
    """The answer for a message; none for those that clients of a stream have no use for."""
    if kind == "error":
        return error(content["ename"], content["evalue"], "\n".join(content["traceback"]))
    if kind in ("execute_result", "display_data"):
        return result(content["data"], is_main=kind == "execute_result")
    return None


def error(name: str, value: str, traceback: str) -> dict:
    return {"type": "error", "name": name, "value": value, "traceback": traceback}


def interrupted() -> dict:
    return error("KeyboardInterrupt", "", "KeyboardInterrupt: the code was interrupted")


def result(data: dict, is_main: bool) -> dict:
    """A result with a field for each known format; the others are extra."""
    answer: dict = {"type": "result", "is_main_result": is_main}
    extra = {}
    for mime, value in data.items():
        if mime in IN_BASE64 and isinstance(value, str):
            value = value.replace("\n", "")
        if mime == "text/plain":
            value = unquoted(value)
        if mime in FIELDS:
            answer[FIELDS[mime]] = value
        else:
            extra[mime] = value
    if extra:
        answer["extra"] = extra
    return answer


def unquoted(text: str) -> str:
    """A text result without the quotes of its representation: clients expect `bar`, not `'bar'`."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def install(shell) -> None:
    """Adds our formats to those the shell asks of every object it shows."""
    formatters = shell.display_formatter.formatters
    formatters[tables.DATA] = tables.formatter(shell)
    formatters[CHART] = chart_of.formatter(shell)
    shell.display_formatter.active_types = [*shell.display_formatter.active_types, tables.DATA, CHART]
    images.install(shell)
