"""What a key without the scope `use` gets, and names of other users' snapshots."""


def test_a_key_with_manage_alone_gets_no_token(guarded, user):
    login = user.log_in(guarded)
    manage = guarded.api(login.ok("POST", "/keys", {"name": "manage", "scopes": ["manage"]})["key"])
    created = manage.post("/e2b/v2/sandboxes", {"templateID": "base", "timeout": 600, "network": {"allowPublicTraffic": False}})
    assert created.status_code == 201, created.text
    sandbox = created.json()["sandboxID"]
    assert manage.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true"}).status_code == 403
    assert manage.post(f"/e2b/sandboxes/{sandbox}/pause").status_code == 204
    resumed = manage.post(f"/e2b/sandboxes/{sandbox}/resume", {"timeout": 600})
    for reply in (created, resumed):
        view = reply.json()
        assert view["sandboxID"] == sandbox
        assert view.get("envdAccessToken") is None and view.get("trafficAccessToken") is None, view
    for api in (manage, login):
        api.close()


def test_snapshot_names_of_others_neither_block_nor_show(admin, new_user):
    alice, bob = new_user(), new_user()
    sandboxes = {one: one.api.create() for one in (alice, bob)}
    for one, sandbox in sandboxes.items():
        one.api.write(sandbox, "/home/user/whose", one.name)
        stored = one.api.post(f"/sandboxes/{sandbox}/snapshot", {"name": "snapa"})
        assert stored.status_code == 200 and stored.json()["name"] == "snapa", stored.text
    for one in (alice, bob):
        entries = [template for template in one.api.ok("GET", "/templates")["templates"] if template["owner"]]
        assert [(template["name"], template["owner"]) for template in entries] == [("snapa", one.name)]
        copy = one.api.create(template="snapa")
        assert one.api.read(copy, "/home/user/whose") == one.name
        assert one.api.info(copy)["template"] == "snapa"
    all_owners = [template for template in admin.ok("GET", "/templates")["templates"] if template["name"] == "snapa"]
    assert {template["owner"] for template in all_owners} == {alice.name, bob.name}
    bob.api.ok("DELETE", "/templates/snapa")
    assert bob.api.delete("/templates/snapa").status_code == 404
    assert alice.api.read(alice.api.create(template="snapa"), "/home/user/whose") == alice.name
    alice.api.ok("DELETE", "/templates/snapa")
