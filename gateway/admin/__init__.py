"""The back office. Pages stand on gateway.admin.kit; who may see what is told by gateway.rights."""

from gateway.admin import access, entities, payments, people, threeds, ticks, trail

__all__ = ["access", "entities", "payments", "people", "threeds", "ticks", "trail"]
