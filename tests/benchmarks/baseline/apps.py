from django.apps import AppConfig


class BaselineConfig(AppConfig):
    name = "tests.benchmarks.baseline"
    label = "baseline"
