"""A certificate authority of a test's own, made with the openssl command."""
import pathlib
import ssl
import subprocess

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]


class Authority:
    def __init__(self, folder, name="authority"):
        self.folder = pathlib.Path(folder)
        self.certificate, self.key = self.folder / f"{name}.pem", self.folder / f"{name}-key.pem"
        self._openssl("req", "-x509", *KEY, "-keyout", self.key, "-out", self.certificate, "-subj", f"/CN={name}")

    @staticmethod
    def _openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def issue(self, name, hosts="DNS:localhost,DNS:*.localhost,DNS:model.invalid,IP:127.0.0.1"):
        """(certificate, key) for a server of these hosts, or for a client of that name."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}-key.pem"
        self._openssl("req", "-x509", *KEY, "-keyout", key, "-out", certificate, "-subj", f"/CN={name}", "-CA", self.certificate,
                      "-CAkey", self.key, "-addext", f"subjectAltName={hosts}", "-addext", "basicConstraints=CA:FALSE")
        return certificate, key

    def server(self, name="server", clients=None):
        """What a server speaks TLS with; `clients`: the authority whose certificates it asks its clients for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(name))
        if clients is not None:
            context.load_verify_locations(clients.certificate)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
