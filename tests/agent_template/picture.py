"""Checks the content of a picture."""

import io

from PIL import Image


def colours(data):
    """How often each colour is in a picture, the most frequent first."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    counted = picture.getcolors(picture.width * picture.height)
    return sorted(((count, colour) for count, colour in counted), reverse=True)


def is_blank(data):
    """Whether there is nothing to see: one colour fills nearly all of it, and there are hardly any others."""
    found = colours(data)
    return len(found) < 20 or found[0][0] > 0.995 * sum(count for count, _ in found)
