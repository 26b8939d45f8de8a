"""Approval rates: figures with intervals, where money is lost, what would bring most, alarms on falls."""
