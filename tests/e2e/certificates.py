"""Certificates for tests: an authority of their own, and what it signs. Made by openssl(1), since the gateway is to read what
operators have."""
import pathlib
import shutil
import ssl
import subprocess
import tempfile

HAS_OPENSSL = shutil.which("openssl") is not None
NAMES = "DNS:localhost,IP:127.0.0.1,IP:::1"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """Its certificate is `ca`; what it signs stands in the same folder."""

    def __init__(self, folder=None, name="ca"):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="sandgate-e2e-ca-"))
        self.ca, self.ca_key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650", "-subj",
                f"/CN={name}", "-keyout", self.ca_key, "-out", self.ca)

    def sign(self, name, days=365, names=NAMES, kind="ec"):
        """(certificate, key) of that common name; `days` below 0: it has expired so long ago."""
        certificate, key, request = (self.folder / f"{name}{end}" for end in (".pem", ".key", ".csr"))
        new = ["-newkey", "rsa:2048"] if kind == "rsa" else ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        openssl("req", *new, "-nodes", "-keyout", key, "-out", request, "-subj", f"/O=Tests/CN={name}", "-addext",
                f"subjectAltName={names}")
        if days >= 0:
            openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.ca_key, "-CAcreateserial", "-days", days,
                    "-copy_extensions", "copy", "-out", certificate)
        else:
            self.sign_expired(request, certificate)
        key.chmod(0o600)
        return certificate, key

    def sign_expired(self, request, certificate):
        """`openssl ca` alone can date a certificate back."""
        (self.folder / "index.txt").write_text("")
        (self.folder / "ca.cnf").write_text(f"""[ca]
default_ca = own
[own]
database = {self.folder}/index.txt
new_certs_dir = {self.folder}
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
organizationName = optional
""")
        openssl("ca", "-batch", "-config", self.folder / "ca.cnf", "-cert", self.ca, "-keyfile", self.ca_key, "-in", request, "-out",
                certificate, "-startdate", "20200101000000Z", "-enddate", "20210101000000Z", "-notext")

    def sign_itself(self, name, *kind):
        """(certificate, key) that nobody else vouches for, of a key as `openssl req -newkey …` takes it."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", *kind, "-nodes", "-days", 30, "-subj", f"/CN={name}", "-keyout", key, "-out", certificate)
        key.chmod(0o600)
        return certificate, key

    def sign_by_sha1(self, name):
        """As `sign`, with the digest of twenty years ago."""
        certificate, key = self.sign(name)
        openssl("x509", "-req", "-sha1", "-in", self.folder / f"{name}.csr", "-CA", self.ca, "-CAkey", self.ca_key, "-CAcreateserial",
                "-out", certificate)
        return certificate, key

    def context(self, least=None, most=None):
        """What a client of it trusts."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if least is not None:
            context.minimum_version = least
        if most is not None:
            context.maximum_version = most
        return context
