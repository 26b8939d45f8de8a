"""The conformance kit: what every connector promises, as one set of tests over rigs. See docs/adding-a-connector.md."""
