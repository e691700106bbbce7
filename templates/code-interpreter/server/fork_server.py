"""A Python that has imported what every kernel needs, and forks one on request.

Asked over the socket whose descriptor is the first argument: `{"cwd", "word"}` with the three descriptors of the new
kernel (its socket, its standard output and its error output). Answers `{"pid"}` or `{"error"}`, and `{"ended", "code"}` when a
kernel has ended. Everything here runs before a fork or beside it: nothing may start a thread.
"""

import json
import os
import select
import signal
import socket
import sys
import traceback


def main(connection: socket.socket) -> None:
    from sandyard_kernel import kernel

    # No longer where our program is: what users import comes from their own places.
    sys.path[0] = ""

    signals, wake = socket.socketpair()
    wake.setblocking(False)
    signals.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        for ready in select.select([connection, signals], [], [])[0]:
            if ready is signals:
                signals.recv(4096)
                report_ended(connection)
                continue
            data, descriptors, _, _ = socket.recv_fds(connection, 65536, 3)
            if not data:
                return
            answer = fork(kernel, json.loads(data), descriptors, (connection, signals, wake))
            for descriptor in descriptors:
                os.close(descriptor)
            connection.send(json.dumps(answer).encode())


def fork(kernel, request: dict, descriptors: list[int], own_variables: tuple) -> dict:
    try:
        pid = os.fork()
    except OSError as error:
        return {"error": f"Python cannot be started: {error.strerror}"}
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for each in own_variables:
                each.close()
            kernel.run(request["cwd"], bytes.fromhex(request["word"]), *descriptors)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return {"pid": pid}


def report_ended(connection: socket.socket) -> None:
    """Collects children that have ended and says so."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        connection.send(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode())


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
