"""Starts the code interpreter's server; `--help` says how."""

from sandyard_interpreter.main import main

if __name__ == "__main__":
    main()
