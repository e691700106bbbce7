"""What a container may do and what it tells: limits, rights, mounts, network, and no secret anywhere."""

import json
import secrets

import httpx

MIB = 1 << 20
# Numbers of capabilities(7).
NET_ADMIN, NET_RAW, SYS_PTRACE, SYS_ADMIN = 12, 13, 19, 21


def test_limits_are_the_containers(make, behind):
    host = behind.container(make(memory_limit="192m", cpu_limit="0.5"))["HostConfig"]
    assert (host["Memory"], host["NanoCpus"]) == (192 * MIB, 500_000_000)
    # Memory on disk would make the limit meaningless.
    assert host["MemorySwap"] == host["Memory"]
    assert host["PidsLimit"] and 0 < host["PidsLimit"] <= 1 << 16


def test_limits_hold_inside(api, make):
    sandbox = make(memory_limit="128m", cpu_limit="0.5")
    greedy = "python3 -c 'x = bytearray(400 << 20); print(len(x))'"
    assert api.run(sandbox, greedy)["exit_code"] != 0
    assert api.run(sandbox, "echo alive")["output"] == "alive\n"


def test_rights_are_taken_away(make, behind):
    container = behind.container(make())
    host = container["HostConfig"]
    assert [name.removeprefix("CAP_") for name in host["CapDrop"]] == ["ALL"]
    # Those over the network are for the agent's first moment, see below.
    never = {"SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "MKNOD", "SYS_RAWIO", "DAC_READ_SEARCH"}
    assert not never & {name.removeprefix("CAP_") for name in host["CapAdd"] or []}
    assert any(option.startswith("no-new-privileges") and not option.endswith("false") for option in host["SecurityOpt"])
    assert not any("unconfined" in option for option in host["SecurityOpt"])
    assert host["Privileged"] is False
    assert (host["PidMode"], host["UTSMode"], host["UsernsMode"]) == ("", "", "")
    assert host["IpcMode"] in ("private", "none", "")
    assert host["Devices"] in (None, [])


def status(api, sandbox, process="self", **options):
    """What the kernel says of a process inside."""
    lines = api.run(sandbox, f"cat /proc/{process}/status", **options)["output"].splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_rights_inside_are_an_ordinary_users(api, sandbox):
    assert api.run(sandbox, "id -un; id -u")["output"].split()[0] == "user"
    process_status = status(api, sandbox)
    assert int(process_status["CapEff"], 16) == 0 and int(process_status["CapPrm"], 16) == 0
    assert process_status["NoNewPrivs"] == "1" and process_status["Seccomp"] == "2"


def test_processes_inside_have_no_rights_over_network_or_system(api, sandbox):
    """The agent may need some for a moment at its start; nobody who is run by it ever has them, root neither."""
    for user in ("root", "user"):
        allowed = int(status(api, sandbox, user=user)["CapBnd"], 16)
        assert not allowed & (1 << NET_ADMIN | 1 << NET_RAW | 1 << SYS_ADMIN | 1 << SYS_PTRACE), hex(allowed)
    assert not int(status(api, sandbox, 1)["CapEff"], 16) & (1 << NET_ADMIN | 1 << SYS_ADMIN)


def test_network_is_none_and_no_port_is_the_hosts(make, behind):
    container = behind.container(make())
    assert container["HostConfig"]["NetworkMode"] == "none"
    assert not container["HostConfig"]["PortBindings"] and container["HostConfig"]["PublishAllPorts"] is False
    assert not any(container["NetworkSettings"]["Ports"].values())


def test_everything_of_ours_inside_is_read_only(api, sandbox, behind):
    mounts = behind.container(sandbox)["Mounts"]
    folders = [mount for mount in mounts if mount["Destination"] != "/workspace"]
    assert folders, "the agent comes from somewhere"
    assert not any(mount["RW"] for mount in folders if mount["Type"] == "bind"), mounts
    for mount in folders:
        ran = api.run(sandbox, f"touch {mount['Destination']}/x 2>/dev/null || : >> {mount['Destination']}", user="root")
        assert ran["exit_code"] != 0 or mount["RW"], f"{mount['Destination']} can be written"


def test_any_image_will_do(api, sandbox):
    """Ours is a plain Debian: no account but root's, nothing that knows of us."""
    ran = api.run(sandbox, "cat /etc/os-release; getent passwd user; pwd; touch ~/mine /workspace/mine && echo written")
    assert "Debian" in ran["output"] and ran["output"].endswith("/home/user\nwritten\n")


def test_docker_inspect_shows_no_secret(server, api, make, behind):
    value = f"value-{secrets.token_hex(8)}"
    stored = api.ok("PUT", "/secrets/told-by-docker", {"value": value, "hosts": ["api.test"]})
    given = f"given-{secrets.token_hex(8)}"
    sandbox = make(user_id=stored["owner"], secrets={"API_KEY": stored["name"]}, env={"GIVEN": given})
    assert api.run(sandbox, "echo $GIVEN")["output"] == f"{given}\n"
    outcome = behind.text(sandbox)
    for secret in (value, given, server.admin_key):
        assert secret not in outcome
    api.ok("DELETE", "/secrets/told-by-docker")


def test_docker_inspect_shows_no_agent_token(server, api, behind):
    headers = {"X-API-Key": server.admin_key}
    created = httpx.post(f"{server.e2b_url}/sandboxes", json={"templateID": "base", "secure": True, "timeout": 600}, headers=headers, timeout=300)
    assert created.status_code == 201, created.text
    sandbox, token = created.json()["sandboxID"], created.json()["envdAccessToken"]
    assert token and token not in behind.text(sandbox)
    api.remove(sandbox)


def test_labels_say_whose_it_is(server, make, behind):
    sandbox = make(user_id="somebody")
    labels = behind.container(sandbox)["Config"]["Labels"]
    assert sandbox in labels.values()
    assert json.dumps(labels).count(server.admin_key) == 0


def test_info_says_which_provider_and_what_it_can(api, make):
    info = api.info(make())
    assert info["provider"] == "docker"
    capabilities = info["capabilities"]
    assert capabilities["pause"] is True and capabilities["stop"] is True
    assert api.info(make(provider="embedded"))["provider"] == "embedded"
