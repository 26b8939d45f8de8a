"""Types of django-unfold, the back office's theme, as far as they are used here: the package ships none.

What is left out is inherited from Django's admin. Source: unfold's own signatures, version in requirements.lock.
"""
