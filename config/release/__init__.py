"""What a release needs beside the sources: a list of what is in it, checksums, and a check against advisories."""
