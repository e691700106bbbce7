"""What other providers than the embedded engine do not offer of E2B's SDK, by `file::test`; patterns are allowed.

See `provider_option.py` of the harness.
"""

# How a test must fail: the class of the error and what it says.
REFUSED = {
    "docker": {
        # On Docker's usual storage, overlay on ext4, nobody can bound a container's disk; its `lacks` say so.
        "test_exceptions.py::test_disk_that_is_full": "Failed: DID NOT RAISE",
        # Unless the operator sets `docker.no_new_privileges = false`.
        "test_sandbox.py::test_default_template_has_what_agents_expect": (
            'CommandExitException: The "no new privileges" flag is set, which prevents sudo from running as root'
        ),
    }
}

# What cannot be asked of a provider, and why.
LEFT_OUT = {"docker": {}}
