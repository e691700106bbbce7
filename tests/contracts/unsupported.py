"""What other providers than the embedded engine do not offer of the contracts, by `file::test`; patterns are allowed.

See `provider_option.py` of the harness.
"""

# How a test must fail: the class of the error and what it says.
REFUSED = {"docker": {}}

# What cannot be asked of a provider, and why.
LEFT_OUT = {
    "docker": {
        "test_crowd.py::test_a_hundred_and_fifty_sandboxes_each_have_every_port": "tests/docker_load does the same with two hundred",
        "test_commands.py::test_a_relative_path_of_the_tools_is_found_below_the_home": "an image has the home that it was built with",
        "test_commands.py::test_apt_get_names_a_template_with_packages_of_its_own": "an image has packages of its own",
        "test_auth.py::*": "logins and tokens are the same whoever runs the sandboxes",
        "test_keys.py::*": "and so are keys",
        "test_open_listener.py::*": "and the listener without credentials",
        "test_readme.py::*": "says nothing of a provider",
    }
}
