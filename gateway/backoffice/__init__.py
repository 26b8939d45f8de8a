"""The back office by subject: the pages of a subject, their queries and what they do stand in one folder."""
