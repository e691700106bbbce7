# One door to the common tasks. Anything longer than a line lives in a script.

# Show the tasks.
default:
    @just --list --unsorted

# Format every crate.
fmt:
    cargo fmt --all

# What CI refuses: unformatted code, lints, broken documentation.
lint:
    ./test only format clippy doc

# Every test.
test:
    ./test

# The short part: format, lints, unit tests, current SDK.
quick:
    ./test quick

# The performance table, with Docker and bubblewrap beside it.
bench *ARGS:
    bench/run {{ARGS}}

# Every fuzz target, for SECONDS each.
fuzz SECONDS="60":
    fuzz/run {{SECONDS}}
