"""The run-time check of annotations in tests: beartype within jaxtyping's scope of axis names.

What jaxtyping's own decorator does, but a check is compiled when it is first needed and shared by
all functions that come from the same lines: jaxtyping compiles two for every function of the
package while it is imported (half a minute in every worker), and two for every function inside a
function whenever its outer function is called; and it checks the arguments twice.
"""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import is_dataclass
from functools import partial, wraps
from types import FunctionType, NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import config

T = TypeVar("T")
Check = Callable[..., Any]

#: Beartype, with int allowed where float is asked.
checked: Callable[[Check], Check] = beartype(conf=BeartypeConf(is_pep484_tower=True))

#: The check of the arguments, that of the result, and the scope that both share; none where there
#: is nothing to check, and no axis names.
Checks = tuple[Check | None, Check | None, Any]

#: The decorator of jaxtyping itself: this file is imported again where its examples are collected,
#: and conftest.py has put the one below in its place by then.
_original = getattr(jaxtyping.jaxtyped, "original", jaxtyping.jaxtyped)
_scope = _original("context")  # has no state of its own: every call may enter it
_no_scope = nullcontext()
_compiled: dict[tuple[object, ...], Checks] = {}


def jaxtyped(*, typechecker: Callable[[Check], Check] = checked) -> Callable[[T], T]:
    """Return the decorator that checks a function, or a dataclass as it is made."""
    return partial(_decorated, typechecker)


jaxtyped.original = _original  # type: ignore[attr-defined]


def _decorated(typechecker: Callable[[Check], Check], item: Any) -> Any:
    if not inspect.isclass(item):
        return _with_check(typechecker, item)
    if is_dataclass(item) and not hasattr(item.__init__, "checks_arguments"):
        item.__init__ = _with_check(typechecker, item.__init__)
    return item


def _with_check(typechecker: Callable[[Check], Check], function: Any) -> Check:
    checks: Checks | None = None

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        nonlocal checks
        if config.jaxtyping_disable:
            return function(*args, **named)
        if checks is None:
            checks = _checks(typechecker, function)
        check_arguments, check_result, scope = checks
        if scope is _no_scope and check_arguments is check_result is None:
            return function(*args, **named)
        with scope:
            if check_arguments is not None:
                check_arguments(*args, **named)
            result = function(*args, **named)
            if check_result is not None:
                check_result(result)
        return result

    call.checks_arguments = True
    return call


def _checks(typechecker: Callable[[Check], Check], function: FunctionType) -> Checks:
    """Return the check of the arguments, that of the result, and the scope of axis names."""
    key = (function.__code__, *map(repr, function.__annotations__.items()))
    if key not in _compiled:
        hints = {name: _hint(function, name) for name in function.__annotations__}
        scope = _scope if any(map(_may_name_axes, hints.values())) else _no_scope
        result = {"return": hints.pop("return")} if "return" in hints else {}
        result = {name: hint for name, hint in result.items() if hint not in ANYTHING}
        hints = {name: hint for name, hint in hints.items() if hint not in ANYTHING}
        check_arguments = typechecker(_like(function, hints)) if hints else None
        check_result = typechecker(_returning(function, result)) if result else None
        _compiled[key] = check_arguments, check_result, scope
    return _compiled[key]


#: Annotations that every value fits.
ANYTHING = (Any, object)
#: Annotations without parts.
LEAVES = (*ANYTHING, None, NoneType, ...)


def _may_name_axes(hint: Any) -> bool:
    """Return whether an annotation may hold axis names; where that is unclear, it may."""
    if any(hint is leaf for leaf in LEAVES) or get_origin(hint) is Literal:
        return False
    if isinstance(hint, list | tuple):  # the arguments of a callable
        return any(map(_may_name_axes, hint))
    if parts := get_args(hint):
        return any(map(_may_name_axes, parts))
    return not inspect.isclass(hint) or issubclass(hint, jaxtyping.AbstractArray)


def _given(result: T) -> T:
    return result


def _hint(function: FunctionType, name: str) -> Any:
    """Return an annotation; anything goes where its words mean nothing at run time."""
    holder = FunctionType(_given.__code__, function.__globals__)
    holder.__annotations__ = {name: function.__annotations__[name]}
    try:
        return get_type_hints(holder, include_extras=True)[name]
    except Exception:  # as jaxtyping does: names imported for the type checker alone, and the like
        return Any


def _like(function: Any, hints: dict[str, Any]) -> FunctionType:
    """Return a function that takes the same arguments and does nothing.

    It sees no names of its module, in which beartype would follow a type into itself for ever.
    """
    code = function.__code__
    flags = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    names = code.co_argcount + code.co_kwonlyargcount + bin(flags).count("1")
    idle = (lambda: None).__code__
    idle = idle.replace(
        co_argcount=code.co_argcount,
        co_posonlyargcount=code.co_posonlyargcount,
        co_kwonlyargcount=code.co_kwonlyargcount,
        co_varnames=code.co_varnames[:names],
        co_nlocals=names,
        co_flags=idle.co_flags | flags,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )
    like = FunctionType(idle, {}, function.__name__, function.__defaults__)
    like.__kwdefaults__ = function.__kwdefaults__
    return _annotated(like, function, hints)


def _returning(function: Any, hints: dict[str, Any]) -> FunctionType:
    """Return a function that gives back what it is given, as the result of another."""
    return _annotated(FunctionType(_given.__code__, {}), function, hints)


def _annotated(stand_in: FunctionType, function: Any, hints: dict[str, Any]) -> FunctionType:
    stand_in.__module__, stand_in.__qualname__ = function.__module__, function.__qualname__
    stand_in.__annotations__ = hints
    return stand_in
