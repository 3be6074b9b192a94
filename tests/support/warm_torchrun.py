"""A torchrun that is already imported: forks once per request and runs torch's own entry point in the child.

Importing torch costs seconds of CPU, running torchrun's code milliseconds. Rows that look at options and
worker environments use this; whatever looks at processes, signals or time starts torchrun afresh.

Protocol on the Unix stream socket given as the only argument, one request per connection: one message
with a JSON object {"module", "args", "env", "cwd"} and three descriptors (stdin, stdout, stderr); answers
are two JSON lines, {"pid"} after the fork and {"status"} (of waitpid) at the end.
"""

import json
import os
import runpy
import signal
import socket
import sys
import threading

import torch.distributed.launch  # noqa: F401
import torch.distributed.run  # noqa: F401


def run_child(request, fds):
    """Becomes torchrun. Never returns."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
    os.closerange(3, 256)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    name = "torch.distributed." + request["module"]
    sys.argv = [name, *request["args"]]
    sys.modules.pop(name)
    # As `python -m` would end: the interpreter's own way of turning exceptions into a status.
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as exit_:
        if not isinstance(exit_.code, (int, type(None))):
            print(exit_.code, file=sys.stderr)
        status = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def serve_one(connection):
    message, fds, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    pid = os.fork()
    if pid == 0:
        run_child(json.loads(message), fds)
    for fd in fds:
        os.close(fd)
    connection.sendall((json.dumps({"pid": pid}) + "\n").encode())

    def report():
        _, status = os.waitpid(pid, 0)
        try:
            connection.sendall((json.dumps({"status": status}) + "\n").encode())
        except OSError:
            pass  # The test has given up on this run.
        connection.close()

    return report


def end_with_parent():
    """The test run holds the other end of stdin; when it is gone, so are we."""
    os.read(0, 1)
    os._exit(0)


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(sys.argv[1])
    listener.listen(64)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        report = serve_one(connection)
        threading.Thread(target=report, daemon=True).start()


if __name__ == "__main__":
    main()
