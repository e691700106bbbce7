"""What runs inside a Python kernel: ipykernel's kernel and shell, spoken to over one socket.

No ports, no keys and no threads: output goes to the process's own pipes, results go to the socket, and a client that
does not read holds the code up instead of filling memory or losing messages.
"""
