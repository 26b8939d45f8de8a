from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """Subscription jobs: their plans, runs and retries of declined runs."""

    name = "gateway.scheduling"
    label = "scheduling"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what payments with job parameters need of jobs (gateway.payments.job_hooks)."""
        from gateway.payments.job_hooks import JOB_HOOKS, JobHooks
        from gateway.scheduling.job_records import start_job
        from gateway.scheduling.job_runs import record_late_booking
        from gateway.scheduling.job_validation import check_job_parameters

        JOB_HOOKS.register(
            JobHooks(check_parameters=check_job_parameters, start=start_job, record_late_booking=record_late_booking)
        )
