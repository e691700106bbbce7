"""Whether a sandbox was paused while something went on in it.

Before and after that an idle one may be paused at any moment: a busy machine takes longer between two calls than its time is.
"""

from datetime import datetime

# What a command prints when it begins and when it ends. A sandbox has this host's clock.
NOW = "date +%s.%N"


def moment(text):
    """A time of the server's, in seconds."""
    return datetime.fromisoformat(text).timestamp()


def pauses(api, sandbox, begin, end):
    """The pauses between two moments, each a number or what `NOW` printed."""
    return [event for event in api.events(sandbox, "paused") if float(begin) <= moment(event["at"]) <= float(end)]
