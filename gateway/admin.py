"""Registers the pages of gateway.backoffice with the site; Django's admin autodiscovery imports this module.

Pages are built on gateway.backoffice.kit.base; gateway.access.permissions decides who sees what.
"""

from gateway.backoffice.access import audit_log_pages, token_pages, user_pages
from gateway.backoffice.acquirers import (
    account_pages,
    account_update_file_pages,
    bank_order_pages,
    capture_batch_pages,
    mandate_pages,
    processor_event_pages,
)
from gateway.backoffice.entities import channel_pages, entity_pages
from gateway.backoffice.follow_ups import approval_pages
from gateway.backoffice.operations import background_work_pages, lookup_pages, periodic_task_pages
from gateway.backoffice.payments import authentication_pages, authorization_release_pages, payment_pages
from gateway.backoffice.personal_data import erasure_request_pages
from gateway.backoffice.risk import risk_list_pages, rule_set_pages, trial_pages
from gateway.backoffice.routing import cost_pages, rule_pages
from gateway.backoffice.schedules import schedule_pages
from gateway.backoffice.webhooks import delivery_pages, endpoint_pages, webhook_panel

__all__ = [
    "account_pages",
    "account_update_file_pages",
    "approval_pages",
    "audit_log_pages",
    "authentication_pages",
    "authorization_release_pages",
    "background_work_pages",
    "bank_order_pages",
    "capture_batch_pages",
    "channel_pages",
    "cost_pages",
    "delivery_pages",
    "endpoint_pages",
    "entity_pages",
    "erasure_request_pages",
    "lookup_pages",
    "mandate_pages",
    "payment_pages",
    "periodic_task_pages",
    "processor_event_pages",
    "risk_list_pages",
    "rule_pages",
    "rule_set_pages",
    "schedule_pages",
    "token_pages",
    "trial_pages",
    "user_pages",
    "webhook_panel",
]
