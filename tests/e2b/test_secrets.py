"""E2B's secrets are not offered here: the SDK gets an error that names the alternative."""

import pytest
from e2b import SecretException

from features import NO_RETRIES


def test_every_call_is_refused_in_words(half):
    secret, paginator = half.Secret, half.Secret.list(limit=5, **NO_RETRIES)
    assert (paginator.has_next, paginator.next_token) == (True, None)
    for call in (
        lambda: secret.create("name", "value", metadata={"k": "v"}, **NO_RETRIES),
        lambda: secret.update("name", "value", **NO_RETRIES),
        lambda: secret.get_info("name", **NO_RETRIES),
        lambda: secret.exists("name", **NO_RETRIES),
        lambda: secret.destroy("name", **NO_RETRIES),
        paginator.next_items,
    ):
        with pytest.raises(SecretException, match="sandyard secret"):
            call()


def test_placeholders_need_no_server_but_are_refused_by_it(half):
    assert half.Secret.fill("openai") == "${e2b.secrets.openai}"
    assert half.Secret.iam_token(audience="sts", token_type="JWT-SVID") == {"audience": "sts", "token_type": "JWT-SVID"}
    rules = {"api.test": [{"transform": {"headers": {"Authorization": half.Secret.fill("openai")}}}]}
    with pytest.raises(Exception, match="e2b"):
        half.Sandbox.create(network={"rules": rules, "allow_out": ["api.test"]})
