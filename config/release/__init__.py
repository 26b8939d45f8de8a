"""Release artefacts besides the sources: SBOM, checksums, and a check against advisories."""
