"""URLs that callers name lead neither to this host by its public addresses nor to what the operator denies."""

import json
import subprocess
import sys
from pathlib import Path


def test_the_server_fetches_nothing_from_itself_whatever_a_name_resolves_to():
    world = Path(__file__).with_name("fetcher_world.py")
    command = ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, world]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    became = json.loads(done.stdout.splitlines()[-1])
    assert became.pop("canary") == []
    fetched = {what for what, status in became.items() if status == 200}
    assert fetched == {"site", "site by name", "site, filled", "first turn"}, became
    assert {status for what, status in became.items() if what not in fetched} == {422}, became
