"""A merchant's or channel's configuration as one JSON document (``manage.py configure``)."""
