"""Personal data of shoppers: what is kept and where, how a person's data is found, exported and erased.

:mod:`gateway.personal_data.table` is the table; everything else here reads it. Source: docs/decisions/0102.
"""
