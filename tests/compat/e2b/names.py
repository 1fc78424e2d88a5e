"""A world in which every name is this machine's, as a wildcard in somebody's DNS makes it: for one command."""
import contextlib
import os
import socket
import struct
import tempfile
import threading

A = 1  # the kind of record that an IPv4 address is


def answer(question):
    """127.0.0.1 for whoever asks for an IPv4 address; for any other kind there is nothing."""
    end = question.index(b"\0", 12) + 5
    [kind] = struct.unpack(">H", question[end - 4:end - 2])
    head = question[:2] + struct.pack(">HHHHH", 0x8180, 1, int(kind == A), 0, 0)
    record = b"\xc0\x0c" + struct.pack(">HHIH", A, 1, 0, 4) + socket.inet_aton("127.0.0.1")
    return head + question[12:end] + (record if kind == A else b"")


@contextlib.contextmanager
def names_are_here():
    """The words to put before a command: with them its resolver is ours."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    address = f"127.9.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"  # port 53 of it is nobody else's
    server.bind((address, 53))

    def serve():
        with contextlib.suppress(OSError):  # closed: nobody asks any more
            while True:
                question, client = server.recvfrom(4096)
                if not question:
                    return
                server.sendto(answer(question), client)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with tempfile.NamedTemporaryFile("w", prefix="hearth-names-") as settings:
            settings.write(f"nameserver {address}\n")
            settings.flush()
            yield ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', settings.name]
    finally:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (address, 53))
        thread.join()
        server.close()
