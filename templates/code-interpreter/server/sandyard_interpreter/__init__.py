"""The code interpreter's HTTP server: contexts in several languages, executions as streams of JSON lines.

Only the standard library: what is imported here is what a fresh sandbox waits for. The languages run in processes of
their own (`kernels`), each with one socket for requests and answers and two pipes for what the code prints.
"""
