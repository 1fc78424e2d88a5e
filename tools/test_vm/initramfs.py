"""An initial RAM disk: files and folders in the format that the kernel unpacks by itself.

The format is cpio's "newc": Documentation/driver-api/early-userspace/buffer-format.rst in Linux.
"""
import pathlib
import stat


class InitialRamDisk:
    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._folders: set[str] = set()
        self._count = 0

    def add_file(self, path: str, content: bytes, mode: int = 0o755) -> None:
        self._add_folders_above(path)
        self._add(path, stat.S_IFREG | mode, content)

    def copy(self, path: str, source: pathlib.Path) -> None:
        self.add_file(path, source.read_bytes())

    def pack(self) -> bytes:
        return b"".join([*self._parts, self._entry("TRAILER!!!", 0, 0, b"")])

    def _add_folders_above(self, path: str) -> None:
        parents = [str(folder) for folder in pathlib.PurePosixPath(path).parents if str(folder) != "."]
        for folder in reversed(parents):
            if folder not in self._folders:
                self._folders.add(folder)
                self._add(folder, stat.S_IFDIR | 0o755, b"")

    def _add(self, path: str, mode: int, content: bytes) -> None:
        self._count += 1
        self._parts.append(self._entry(path, self._count, mode, content))

    @staticmethod
    def _entry(path: str, inode: int, mode: int, content: bytes) -> bytes:
        name = path.encode() + b"\0"
        # inode, mode, uid, gid, links, time, size, device, special device, length of name, checksum
        fields = [inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        return pad(head) + pad(content)


def pad(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
