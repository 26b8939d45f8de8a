"""How English pages write a moment: as all pages of ours do, to the second, with its zone."""

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = r"Y-m-d H:i:s \U\T\C"
