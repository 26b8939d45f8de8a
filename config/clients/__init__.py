"""Generates the models of the client packages below clients/ from the OpenAPI document.

The surface of the packages (methods, retries, errors, webhooks) is written by hand; types of parameters and answers,
result code families and names of maps are generated: `make clients`. See docs/decisions/0080.
"""
