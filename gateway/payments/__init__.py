"""The heart: parse → begin → screen → authenticate → submit → complete → respond. Many doors, one corridor."""
