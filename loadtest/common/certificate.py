"""A self-signed certificate of 127.0.0.1, with a P-256 key as Google's and Apple's have."""

import os

from common.programs import run


def make_certificate(folder):
    """The paths of the certificate and of its key."""
    certificate, key = os.path.join(folder, "tls.pem"), os.path.join(folder, "tls.key")
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-keyout", key,
         "-out", certificate, "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], "making a certificate")
    return certificate, key
