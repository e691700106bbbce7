"""Ways out, tried from inside a sandbox: `python3 probes.py NAME [JSON ARGUMENT…]` prints as JSON what came of one.

Plain standard library, because a sandbox has no more. Every probe says what happened instead of failing: `outcome` is
`answered` when bytes came back, else why not. Some would change the network of the host that runs them, so all refuse to run
anywhere but in a sandbox.
"""

import array
import ctypes
import errno
import contextlib
import json
import os
import socket
import ssl
import struct
import sys

# How long is waited for what comes, be it an answer or a refusal. Six suites and compilers may share two cores.
TIMEOUT = 60
# How long is listened where nothing is to come.
SILENCE = 5
# How often a look-up is tried that a name server could not answer; RFC 1035.
ATTEMPTS, SERVER_FAILURE = 5, 2


def _error_text(error):
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, socket.gaierror):
        return f"lookup: {error.strerror}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason}"
    if isinstance(error, OSError) and error.errno:
        return errno.errorcode.get(error.errno, str(error.errno))
    return f"{type(error).__name__}: {error}"


def _outcome(work):
    try:
        return work()
    except (OSError, ValueError, EOFError) as error:
        return {"outcome": _error_text(error)}


def _talk(connection, request):
    """Sends a request and reads until there is an answer or an end."""
    connection.sendall(request)
    answer = connection.recv(65_536)
    return {"outcome": "answered" if answer else "closed", "answer": answer.decode(errors="replace")}


def lookup(name):
    """As every program looks a name up."""
    found = socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)
    return {"outcome": "answered", "addresses": sorted({entry[4][0] for entry in found})}


def connect(host, port, request="GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", timeout=TIMEOUT):
    """A plain connection, by name or address."""
    with socket.create_connection((host, port), timeout) as connection:
        return _talk(connection, request.encode())


def request(host, port, *hosts, path="/echo", form="{path}"):
    """Several requests on one connection, each with its own `Host`; says how far it got."""
    answers = []
    with socket.create_connection((host, port), TIMEOUT) as connection:
        reader = connection.makefile("rb")
        for host_header in hosts:
            try:
                connection.sendall(f"GET {form.format(path=path)} HTTP/1.1\r\nHost: {host_header}\r\n\r\n".encode())
                answer = _answer(reader)
            except OSError as error:
                return {"outcome": _error_text(error), "answers": answers}
            if answer is None:
                return {"outcome": "closed", "answers": answers}
            answers.append(answer)
    return {"outcome": "answered", "answers": answers}


def _answer(reader):
    """The status and the body of an answer; none when the connection ends before it."""
    status = reader.readline().split()
    if len(status) < 2:
        return None
    size = 0
    while (line := reader.readline().strip()) != b"":
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    return [int(status[1]), reader.read(size).decode(errors="replace")]


def tls(host, port, host_header, http_host=None):
    """TLS to one name, greeting with another, whatever certificate comes."""
    context = ssl._create_unverified_context()
    with socket.create_connection((host, port), TIMEOUT) as connection:
        with context.wrap_socket(connection, server_hostname=host_header) as secured:
            return _talk(secured, f"GET /echo HTTP/1.1\r\nHost: {http_host or host_header}\r\n\r\n".encode())


def dns_message(name, kind=1):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", 4711, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def _dns_answer(message):
    code = struct.unpack(">H", message[2:4])[0] & 15
    return {"outcome": "answered", "code": code, "count": struct.unpack(">H", message[6:8])[0]}


def query_udp(server, port, name, kind=1):
    """A look-up at a server of one's own choice."""
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(TIMEOUT)
        client.connect((server, port))
        for _ in range(ATTEMPTS):
            client.send(dns_message(name, kind))
            answer = _dns_answer(client.recv(4096))
            # One that nobody had time for is asked again, as by every program.
            if answer["code"] != SERVER_FAILURE:
                break
        return answer


def query_tcp(server, port, name, kind=1):
    message = dns_message(name, kind)
    with socket.create_connection((server, port), TIMEOUT) as client:
        client.sendall(struct.pack(">H", len(message)) + message)
        answer = client.makefile("rb")
        size = answer.read(2)
        if len(size) < 2:
            return {"outcome": "closed"}
        return _dns_answer(answer.read(struct.unpack(">H", size)[0]))


def datagram(host, port, text, repeated=3):
    """UDP; sent a few times, because a refusal is heard of at the next call."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(TIMEOUT / repeated)
        client.connect((host, port))
        for _ in range(repeated):
            client.send(text.encode())
            try:
                return {"outcome": "answered", "answer": client.recv(4096).decode(errors="replace")}
            except TimeoutError:
                continue
    return {"outcome": "timeout"}


def ping(address, text="x"):
    """An echo request by both kinds of socket the kernel has for it."""
    family, protocol, kind = (10, 58, 128) if ":" in address else (2, 1, 8)
    outcomes = {}
    for name, socket_kind in (("raw", socket.SOCK_RAW), ("datagram", socket.SOCK_DGRAM)):

        def attempt(socket_kind=socket_kind):
            with socket.socket(family, socket_kind, protocol) as client:
                client.settimeout(SILENCE / 2)
                head = struct.pack(">BBHHH", kind, 0, 0, 7, 1)
                packet = head + text.encode()
                total = sum(struct.unpack(f">{(len(packet) + 1) // 2}H", packet + b"\0" * (len(packet) % 2)))
                total = (total >> 16) + (total & 0xFFFF)
                check = ~(total + (total >> 16)) & 0xFFFF
                client.sendto(packet[:2] + struct.pack(">H", check) + packet[4:], (address, 0))
                client.recv(4096)
                return {"outcome": "answered"}

        outcomes[name] = _outcome(attempt)["outcome"]
    return {"outcome": "answered" if "answered" in outcomes.values() else "none", **outcomes}


# --- kernel interfaces (rtnetlink(7), libnftables)


def _netlink(family, kind, flags, body):
    """One netlink request; `done`, or the error in words."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family) as link:
        link.bind((0, 0))
        head = struct.pack("=IHHII", 16 + len(body), kind, flags | 0x5, 1, 0)
        link.send(head + body)
        while True:
            answer = link.recv(65_536)
            _, answered, _, _, _ = struct.unpack("=IHHII", answer[:16])
            if answered == 2:
                code = -struct.unpack("=i", answer[16:20])[0]
                return {"outcome": "done" if code == 0 else errno.errorcode.get(code, str(code))}


def _attribute(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def routes_and_rules():
    """Tries to change routes, addresses, links and firewall; says for each what the kernel answered."""
    loopback = socket.if_nametoindex("lo")
    route = struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 4, 253, 1, 0)
    address = struct.pack("=BBBBI", 2, 24, 0, 0, loopback)
    link = struct.pack("=BxHiII", 0, 0, 0, 1, 1)
    dummy = _attribute(18, _attribute(1, b"dummy"))
    packed = socket.inet_aton("203.0.113.9")
    tried = {
        "delete the route": (0, 25, 0, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 0, 0, 0, 0, 0)),
        "add a route": (0, 24, 0x600, route + _attribute(4, struct.pack("=i", loopback))),
        "add an address": (0, 20, 0x600, address + _attribute(2, packed) + _attribute(1, packed)),
        "add a link": (0, 16, 0x600, link + dummy),
        "take loopback down": (0, 16, 0, struct.pack("=BxHiII", 0, 0, loopback, 0, 1)),
    }
    outcomes = {name: _outcome(lambda message=message: _netlink(*message))["outcome"] for name, message in tried.items()}
    for verb, kind in (("add a table", 0), ("delete every table", 2)):
        outcomes[verb] = _outcome(lambda kind=kind: _nftables(kind))["outcome"]
    return {"outcome": "done" if "done" in outcomes.values() else "refused", **outcomes}


def _nftables(kind):
    """A batch with one message; NFT_MSG_NEWTABLE 0, NFT_MSG_DELTABLE 2."""

    def message(number, flags, body):
        return struct.pack("=IHHII", 16 + len(body), number, flags, 1, 0) + body

    generic = lambda family, res: struct.pack(">BBH", family, 0, res)  # noqa: E731
    body = generic(2, 0) + (_attribute(1, b"intruder\0") if kind == 0 else b"")
    batch = message(16, 1, generic(0, 10)) + message(10 << 8 | kind, 0x405, body) + message(17, 1, generic(0, 10))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as link:
        link.settimeout(TIMEOUT)
        link.bind((0, 0))
        link.send(batch)
        answer = link.recv(65_536)
        code = -struct.unpack("=i", answer[16:20])[0]
        return {"outcome": "done" if code == 0 else errno.errorcode.get(code, str(code))}


def other_namespaces(host, port):
    """Goes into namespaces of its own making and tries from there, and tries to come back with more rights."""
    libc = ctypes.CDLL(None, use_errno=True)
    outcomes = {}

    def in_child(name, work):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, json.dumps(_outcome(work)).encode())
            os._exit(0)
        os.close(writer)
        with open(reader) as output:
            text = output.read()
        os.waitpid(child, 0)
        outcomes[name] = json.loads(text)["outcome"] if text else "killed"

    def call(result):
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def own_network():
        call(libc.unshare(0x10000000 | 0x40000000))
        return connect(host, port)

    def back_again():
        call(libc.unshare(0x10000000))
        with open("/proc/1/ns/net") as namespace:
            call(libc.setns(namespace.fileno(), 0x40000000))
        return routes_and_rules()

    in_child("a network of its own", own_network)
    in_child("the sandbox's network as another root", back_again)
    return {"outcome": "done" if {"done", "answered"} & set(outcomes.values()) else "refused", **outcomes}


# --- the agent


def agent_socket():
    """Every way to the agent's own door that a path or a name could be."""
    found = []
    for folder, folders, files in os.walk("/"):
        folders[:] = [one for one in folders if os.path.join(folder, one) not in ("/proc", "/sys", "/usr")]
        found += [os.path.join(folder, name) for name in files if name == "agent.sock"]
    with open("/proc/net/unix") as table:
        names = [line.split()[7] for line in table.readlines()[1:] if len(line.split()) > 7]
    reached = []
    for name in {*found, *names}:
        location = "\0" + name[1:] if name.startswith("@") else name
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(TIMEOUT)
            try:
                client.connect(location)
                reached.append(name)
            except OSError:
                pass
    return {"outcome": "answered" if reached else "none", "reached": reached}


def agent_descriptors(host, port):
    """Takes the agent's own descriptors (pidfd_getfd(2)) and asks the gateway by hand for what the policy denies."""
    libc = ctypes.CDLL(None, use_errno=True)
    pid = libc.syscall(434, 1, 0)
    if pid < 0:
        return {"outcome": "refused", "asked": 0, "why": errno.errorcode.get(ctypes.get_errno())}
    taken, attempts, reason = 0, 0, None
    for number in range(3, 1024):
        copy = libc.syscall(438, pid, number, 0)
        if copy < 0:
            if ctypes.get_errno() != errno.EBADF:
                reason = errno.errorcode.get(ctypes.get_errno())
            continue
        taken += 1
        try:
            channel = socket.socket(fileno=copy)
            if channel.family == socket.AF_UNIX and not channel.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                attempts += _ask_by_hand(channel, host, port)
        except OSError:
            continue
    return {"outcome": "done" if attempts else "refused", "taken": taken, "asked": attempts, "why": reason}


def _ask_by_hand(channel, host, port):
    """An `Open` frame with a connection, as the agent would send it; the connection must then bring nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    body = json.dumps({"type": "open", "host": host, "port": port, "via": "redirect"}).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [far.fileno()]))]
    channel.sendmsg([struct.pack(">I", len(body)) + body], rights)
    far.close()
    near.settimeout(SILENCE)
    try:
        near.sendall(b"GET /echo HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        assert not near.recv(4096), "the gateway carried what the policy denies"
    except OSError:
        pass
    return 1


def by_proxy(proxy_port, kind, host, port):
    """The agent's own ports, spoken to by hand in every language a proxy may know."""
    with socket.create_connection(("127.0.0.1", proxy_port), SILENCE) as connection:
        if kind == "connect":
            answer = _talk(connection, f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            if answer["answer"].startswith(("HTTP/1.1 200", "HTTP/1.0 200")):
                return _talk(connection, b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
            return {**answer, "outcome": "refused"}
        if kind == "url":
            answer = _talk(connection, f"GET http://{host}:{port}/echo HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            is_through = answer["answer"].startswith(("HTTP/1.1 200", "HTTP/1.0 200"))
            return {**answer, "outcome": "answered" if is_through else "refused"}
        if kind == "socks":
            connection.sendall(b"\5\1\0")
            if connection.recv(2) != b"\5\0":
                return {"outcome": "refused"}
            name = host.encode()
            connection.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + struct.pack(">H", port))
            reply = connection.recv(256)
            if reply[:2] != b"\5\0":
                return {"outcome": "refused", "reply": reply[1] if len(reply) > 1 else None}
            return _talk(connection, b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        body = json.dumps({"type": "open", "host": host, "port": port, "via": "redirect"}).encode()
        return {**_talk(connection, struct.pack(">I", len(body)) + body), "outcome": "refused"}


def _greeted(address, greeting):
    """A new connection that was sent something; or why there is none, since one that is refused may be reset at once."""
    try:
        client = socket.create_connection(address, TIMEOUT)
    except OSError as error:
        return _error_text(error)
    # A reset that arrives only now is checked later.
    with contextlib.suppress(OSError):
        client.sendall(greeting)
    return client


def _received(client, size):
    try:
        return client.recv(size, socket.MSG_WAITALL)
    except OSError as error:
        return _error_text(error)


def open_many(host, port, count):
    """Opens many connections, all at once, and has each say something back; says how many did."""
    import resource

    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4]
    clients = [_greeted(address, b"%08d\n" % number) for number in range(count)]
    right, wrong = 0, {}
    for number, client in enumerate(clients):
        answer = client if isinstance(client, str) else _received(client, 9)
        if answer == b"%08d\n" % number:
            right += 1
        else:
            wrong[str(answer)] = wrong.get(str(answer), 0) + 1
    return {"outcome": "answered", "right": right, "wrong": wrong}


PROBES = {
    function.__name__: function
    for function in (
        lookup, connect, request, tls, query_udp, query_tcp, datagram, ping, routes_and_rules, other_namespaces,
        agent_socket, agent_descriptors, by_proxy, open_many,
    )
}  # fmt: skip


def must_be_inside():
    """Ends the program where the first process is not our agent, as on a host that somebody works on."""
    with open("/proc/1/cmdline", "rb") as first:
        if not first.read().startswith(b"sandyard-agent"):
            sys.exit("probes.py only runs inside a sandbox")


if __name__ == "__main__":
    must_be_inside()
    arguments = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    print(json.dumps(_outcome(lambda: PROBES[sys.argv[1]](*arguments.get("args", []), **arguments.get("kwargs", {})))))
