"""The back office: a plain admin for now. Payments are read here, entities are changed, tokens are issued."""

from gateway.admin import access, entities, payments

__all__ = ["access", "entities", "payments"]
