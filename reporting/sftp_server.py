"""The columns of a row that names an SFTP server with its login: what SftpSource and SftpTarget have in common."""

from __future__ import annotations

from django.db import models

from gateway.core import identifiers


class SftpServer(models.Model):
    """An SFTP server and the login there. ``host_key``: the server's public key as in known_hosts (type, base64); any
    other is refused. ``secret_sealed``: a password, or a private key of OpenSSH, sealed for this row. ``folder``: the
    one that is used."""

    class SecretKind(models.TextChoices):
        PASSWORD = "password"  # noqa: S105 - the kind of secret, not one
        KEY = "key", "private key"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    host = models.CharField(max_length=255)
    port = models.PositiveIntegerField(default=22)
    username = models.CharField(max_length=64)
    secret_kind = models.CharField(max_length=8, choices=SecretKind)
    secret_sealed = models.BinaryField()
    host_key = models.CharField(max_length=1024)
    folder = models.CharField(max_length=255, default=".")
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"sftp://{self.username}@{self.host}:{self.port}/{self.folder}"
