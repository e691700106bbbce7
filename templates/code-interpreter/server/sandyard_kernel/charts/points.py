"""Lines and scattered points."""

from .axes import coordinate, label_of, labels_of, reader, ticks_of

# Beyond it the picture says as much.
MAX_POINTS = 50_000


def extract(axes) -> dict | None:
    lines = [line for line in axes.lines if line.get_visible() and line.get_transform() == axes.transData]
    drawn = [line for line in lines if line.get_linestyle() not in ("None", "", " ")]
    clouds = [cloud for cloud in axes.collections if type(cloud).__name__ == "PathCollection" and len(cloud.get_offsets())]
    if drawn:
        kind, elements = "line", [line_points(line, axes) for line in drawn]
    elif lines or clouds:
        kind = "scatter"
        elements = [*(cloud_points(cloud, axes) for cloud in clouds), *(line_points(line, axes) for line in lines)]
    else:
        return None
    if sum(len(element["points"]) for element in elements) > MAX_POINTS:
        return None
    return {"type": kind, **labels_of(axes), **ticks_of(axes.xaxis, "x"), **ticks_of(axes.yaxis, "y"), "elements": elements}


def line_points(line, axes) -> dict:
    """A line's points as the code gave them; where pandas has counted periods instead, as what they stand for."""
    read = reader(axes.xaxis) if getattr(axes.xaxis, "freq", None) is not None else coordinate
    x, y = line.get_xdata(orig=True), line.get_ydata(orig=True)
    return {"label": label_of(line), "points": [[read(a), coordinate(b)] for a, b in zip(x, y)]}


def cloud_points(cloud, axes) -> dict:
    read_x, read_y = reader(axes.xaxis), reader(axes.yaxis)
    points = [[read_x(x), read_y(y)] for x, y in cloud.get_offsets().tolist() if x is not None and y is not None]
    return {"label": label_of(cloud), "points": points}
