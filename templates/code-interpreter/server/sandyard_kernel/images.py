"""Pictures of Pillow: showing and saving one also sends it."""

import functools
import os
import sys

from IPython.display import display

from .imports import when_imported

EXTENSIONS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")


def install(shell) -> None:
    when_imported("PIL.Image", lambda module: patch(module.Image, shell))


def patch(image, shell) -> None:
    """There is no screen, so `show` displays; a picture that the code itself saves as a file is displayed too."""
    save = image.save

    @functools.wraps(save)
    def saving(self, target, *arguments, **options):
        saved = save(self, target, *arguments, **options)
        is_own = sys._getframe(1).f_globals is shell.user_ns
        if is_own and isinstance(target, (str, os.PathLike)) and os.fspath(target).lower().endswith(EXTENSIONS):
            display(self)
        return saved

    image.save = saving
    image.show = lambda self, *_, **__: display(self)
