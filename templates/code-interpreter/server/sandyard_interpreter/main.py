"""The program: options, and what is started in which order."""

import os
import sys
from pathlib import Path

from .fork_process import ForkProcess

# Where the languages' own programs are.
HERE = Path(__file__).resolve().parents[1]


def main() -> None:
    # Not for the code that runs here.
    token = os.environ.pop("SANDYARD_ENVS_TOKEN", None)
    options = parse(sys.argv[1:])
    # A sandbox is often used at once: Python warms up on one core while this process imports the rest on another.
    process = ForkProcess([options.python, str(HERE / "fork_server.py")])
    from .serve import run

    try:
        run(options, process, token, HERE / "node" / "main.mjs")
    except OSError as error:
        sys.exit(f"error: cannot listen on {options.host}:{options.port}: {error.strerror}")
    finally:
        process.stop()


def parse(arguments: list[str]):
    import argparse

    parser = argparse.ArgumentParser(prog="code-interpreter", description="Runs code for the E2B code-interpreter SDKs.")
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=49999, help="port to listen on (default: %(default)s)")
    parser.add_argument("--home", default=str(Path.home()), help="where contexts work unless told (default: %(default)s)")
    parser.add_argument("--agent", default="http://127.0.0.1:49983", help="who knows the sandbox's variables")
    parser.add_argument("--python", default=sys.executable, help="Python with ipykernel (default: this one)")
    parser.add_argument("--node", default="node", help="node, for JavaScript and TypeScript (default: %(default)s)")
    return parser.parse_args(arguments)
