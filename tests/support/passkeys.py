"""A passkey in software: registers and answers like a browser on a page of any origin."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Any

from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.webauthn.internal.auth import WebAuthn
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from django.contrib.auth.models import User
from fido2.cose import ES256
from fido2.utils import websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData

_FLAGS = AuthenticatorData.FLAG.UP | AuthenticatorData.FLAG.UV


class SoftPasskey:
    """One key for one host (``rp``), made for sign-ins without a password."""

    def __init__(self, rp: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.ident = os.urandom(16)
        self.rp = sha256(rp.encode()).digest()

    def register(self, challenge: str, origin: str, **client: Any) -> dict[str, Any]:
        """The answer to the page that adds a passkey."""
        public = ES256.from_cryptography_key(self.key.public_key())
        data = AuthenticatorData.create(
            self.rp,
            _FLAGS | AuthenticatorData.FLAG.AT,
            0,
            AttestedCredentialData.create(bytes(16), self.ident, public),
        )
        said = CollectedClientData.create("webauthn.create", challenge, origin, **client)
        return self._wrap(said, attestationObject=AttestationObject.create("none", data, {})) | {
            "clientExtensionResults": {"credProps": {"rk": True}}
        }

    def answer(self, challenge: str, origin: str, user: User, **client: Any) -> dict[str, Any]:
        """The answer to a challenge."""
        said = CollectedClientData.create("webauthn.get", challenge, origin, **client)
        data = AuthenticatorData.create(self.rp, _FLAGS, 1)
        signature = self.key.sign(data + said.hash, ec.ECDSA(SHA256()))
        handle = user_pk_to_url_str(user).encode()
        return self._wrap(said, authenticatorData=data, signature=signature, userHandle=handle)

    def give_to(self, user: User) -> SoftPasskey:
        """Store it as one that ``user`` has added."""
        WebAuthn.add(user, "key", self.register("AAAA", "https://testserver"))
        return self

    def _wrap(self, said: CollectedClientData, **parts: bytes) -> dict[str, Any]:
        ident = websafe_encode(self.ident)
        response = {name: websafe_encode(part) for name, part in {"clientDataJSON": said, **parts}.items()}
        return {"id": ident, "rawId": ident, "type": "public-key", "response": response, "clientExtensionResults": {}}
