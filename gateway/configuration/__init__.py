"""A merchant's or channel's configuration as one JSON document, until the back office has pages for it."""
