"""A real registry (Debian's docker-registry) on loopback, and images to fill it with."""
import gzip
import hashlib
import io
import json
import pathlib
import platform
import shutil
import socket
import ssl
import subprocess
import tarfile
import tempfile
import unittest
import urllib.error
import urllib.request
import warnings

from hearth import free_ports, wait_until

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OCI = "application/vnd.oci.image."


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise unittest.SkipTest(f"needs {program}: apt-get install {program}")


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar_of(files):
    """A tar archive of {path: bytes, or a link's target as text}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size, info.mode = len(content), 0o755
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def busybox_layer():
    need("busybox")
    busybox = pathlib.Path(shutil.which("busybox")).read_bytes()
    links = {f"bin/{name}": "busybox" for name in ("sh", "cat", "echo", "ls", "id", "env", "pwd", "sleep")}
    users = b"root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/app:/bin/sh\n"
    return tar_of({"bin/busybox": busybox, **links, "root/.keep": b"", "etc/passwd": users})


class Image:
    """The blobs of an image made of these uncompressed layers."""

    def __init__(self, layers, config=None, architecture=ARCHITECTURE):
        self.blobs, self.layers = {}, layers
        self.config = self.add(json.dumps({
            "architecture": architecture, "os": "linux", "created": "2024-01-02T03:04:05Z", "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]}}).encode())
        parts = [self.descriptor(self.add(gzip.compress(layer, 1)), "layer.v1.tar+gzip") for layer in layers]
        self.manifest = json.dumps({"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
                                    "config": self.descriptor(self.config, "config.v1+json"), "layers": parts}).encode()

    def add(self, data):
        self.blobs[digest_of(data)] = data
        return digest_of(data)

    def descriptor(self, digest, kind):
        return {"mediaType": OCI + kind, "digest": digest, "size": len(self.blobs[digest])}

    def write_layout(self, folder, name):
        """An OCI layout, which skopeo turns into everything else."""
        blobs = pathlib.Path(folder, "blobs/sha256")
        blobs.mkdir(parents=True)
        self.add(self.manifest)
        for digest, data in self.blobs.items():
            blobs.joinpath(digest.removeprefix("sha256:")).write_bytes(data)
        entry = self.descriptor(digest_of(self.manifest), "manifest.v1+json")
        entry["annotations"] = {"org.opencontainers.image.ref.name": name}
        pathlib.Path(folder, "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
        pathlib.Path(folder, "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


class Registry:
    def __init__(self, user=None, password=None, tls=False):
        need("docker-registry")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hearth-registry-"))
        self.user, self.password = user, password
        self.scheme, self.tls = "http", None
        [port] = free_ports(1)
        self.host = f"127.0.0.1:{port}"
        config = {"version": "0.1", "log": {"level": "error"}, "http": {"addr": self.host},
                  "storage": {"filesystem": {"rootdirectory": str(self.folder / "storage")}}}
        if user:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import crypt
            line = f"{user}:{crypt.crypt(password, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))}\n"
            (self.folder / "htpasswd").write_text(line)
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(self.folder / "htpasswd")}}
        if tls:
            need("openssl")
            self.certificate = str(self.folder / "certificate.pem")
            key = str(self.folder / "key.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                            "-subj", "/CN=registry", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                            "-out", self.certificate], check=True, capture_output=True)
            config["http"]["tls"] = {"certificate": self.certificate, "key": key}
            self.folder.chmod(0o755)  # whoever is to trust the certificate reads it
            self.scheme, self.tls = "https", ssl.create_default_context(cafile=self.certificate)
        (self.folder / "config.yml").write_text(json.dumps(config))
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(["docker-registry", "serve", str(self.folder / "config.yml")],
                                        stdout=self.log, stderr=self.log)
        wait_until(self.answers, what="a registry")

    def answers(self):
        try:
            with socket.create_connection(self.host.split(":"), timeout=1):
                return True
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()
        shutil.rmtree(self.folder)

    def ask(self, method, path, data=None, kind="application/octet-stream"):
        url = path if path.startswith("http") else f"{self.scheme}://{self.host}{path}"
        request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": kind})
        if self.user:
            import base64
            pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            request.add_header("Authorization", "Basic " + pair)
        return urllib.request.urlopen(request, timeout=60, context=self.tls)

    def push(self, repository, tag, image):
        for digest, data in image.blobs.items():
            place = self.ask("POST", f"/v2/{repository}/blobs/uploads/", b"").headers["Location"]
            self.ask("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", data)
        self.ask("PUT", f"/v2/{repository}/manifests/{tag}", image.manifest, OCI + "manifest.v1+json")
        return f"{self.host}/{repository}:{tag}"

    def blob_file(self, digest):
        name = digest.removeprefix("sha256:")
        return self.folder / f"storage/docker/registry/v2/blobs/sha256/{name[:2]}/{name}/data"
