"""`tollhouse doctor`: looks at an installation for all that can be wrong, and says how each fault is mended."""
