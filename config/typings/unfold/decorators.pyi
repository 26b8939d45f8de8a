from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db.models.expressions import BaseExpression, Combinable
from django.utils.functional import Promise

_F = TypeVar("_F", bound=Callable[..., Any])

def display(
    function: None = None,
    *,
    boolean: bool | None = None,
    image: bool | None = None,
    ordering: str | Combinable | BaseExpression | None = None,
    description: str | Promise | None = None,
    empty_value: str | None = None,
    dropdown: bool | None = None,
    label: bool | str | Mapping[str, str] | None = None,
    header: bool | None = None,
) -> Callable[[_F], _F]: ...
