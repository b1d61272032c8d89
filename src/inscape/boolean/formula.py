"""Boolean functions by formula: a parser of a small grammar, never run as code."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from inscape.boolean.truth_table import MOST_INPUTS, TruthTable, variable

#: From loose to tight, as the words and the signs bind.
LEVELS: tuple[tuple[frozenset[str], Callable[[int, int], int]], ...] = (
    (frozenset({"or", "|"}), int.__or__),
    (frozenset({"xor", "^"}), int.__xor__),
    (frozenset({"and", "&"}), int.__and__),
)
NOT = frozenset({"not", "~", "!"})
WORDS = frozenset({"or", "xor", "and", "not"})
#: Parentheses and negations may be nested this deep.
DEEPEST = 50

_TOKEN = re.compile(r"\s*(?:(x\d+)|([a-z]+)|([01])(?!\w)|([&|^~!()]))", re.IGNORECASE)


def formula(text: str, n: int | None = None) -> TruthTable:
    """Return the function that a formula stands for.

    Inputs are x1, x2, ...; signs are ``and or xor not`` or ``& | ^ ~``, from tight to loose: not,
    and, xor, or. Parentheses, 0 and 1 may be used.

    Args:
        text: The formula.
        n: Number of inputs; the largest that the formula names, by default.

    >>> formula("x1 xor x2 xor x3 xor x4").number
    27030
    >>> str(formula("x1 and not x2"))
    '0010'
    """
    tokens = _tokens(text)
    named = [int(token[1:]) for token in tokens if token[0] == "x" and token not in WORDS]
    if n is None:
        n = max([1, *named])
    for k in named:
        if not 1 <= k <= min(n, MOST_INPUTS):
            raise ValueError(
                f"a formula of {n} inputs may name x1 to x{min(n, MOST_INPUTS)}, found x{k}: "
                "rename it or raise n."
            )
    reader = _Reader(tokens, n, text)
    return TruthTable(n, reader.value())


def read_function(text: str) -> TruthTable:
    """Return the function that a text names: ``NUMBER:INPUTS``, or a formula.

    >>> read_function("27030:4") == formula("x1 xor x2 xor x3 xor x4")
    True
    """
    if numbered := re.fullmatch(r"\s*(\d{1,4000})\s*:\s*(\d{1,4})\s*", text):
        return TruthTable(int(numbered[2]), int(numbered[1]))
    if re.search(r"x\d", text, re.IGNORECASE):
        return formula(text)
    raise ValueError(
        f"--boolean must be NUMBER:INPUTS or a formula of x1, x2, ..., found {text[:80]!r}: "
        "write 27030:4, or 'x1 ^ x2 & x3'."
    )


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        parsed = _TOKEN.match(text, at)
        token = parsed.group().strip().lower() if parsed else text[at:].split()[0]
        known = parsed is not None and len(token) <= 9 and (not parsed[2] or token in WORDS)
        if parsed is None or not known:
            raise ValueError(
                f"a formula may hold x1, x2, ..., and, or, xor, not, & | ^ ~, 0, 1 and "
                f"parentheses, found {_short(token)!r} in {_short(text)!r}: rewrite it."
            )
        tokens.append(token)
        at = parsed.end()
    return tokens


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclass
class _Reader:
    """Parser of tokens from left to right; the value of each part is the number of a table."""

    tokens: list[str]
    n: int
    text: str
    at: int = 0
    nested: int = 0

    def value(self) -> int:
        value = self.level(0)
        if self.at < len(self.tokens):
            raise self.wrong("the end or a sign between two parts")
        return value

    def level(self, k: int) -> int:
        if k == len(LEVELS):
            return self.single()
        signs, joined = LEVELS[k]
        value = self.level(k + 1)
        while self.next() in signs:
            self.at += 1
            value = joined(value, self.level(k + 1))
        return value

    def single(self) -> int:
        token = self.next()
        self.at += 1
        full_mask = (1 << (1 << self.n)) - 1
        if token in NOT:
            self.deeper()
            value = full_mask ^ self.single()
        elif token == "(":
            self.deeper()
            value = self.level(0)
            if self.next() != ")":
                raise self.wrong("')'")
            self.at += 1
        elif token in ("0", "1"):
            return full_mask * int(token)
        elif token.startswith("x") and token not in WORDS:
            return variable(int(token[1:]), self.n).number
        else:
            self.at -= 1
            raise self.wrong("an input, 'not' or '('")
        self.nested -= 1
        return value

    def deeper(self) -> None:
        self.nested += 1
        if self.nested > DEEPEST:
            raise ValueError(
                f"a formula may be nested {DEEPEST} deep, found more: write it flatter, or give "
                "its table."
            )

    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def wrong(self, expected: str) -> ValueError:
        token = repr(self.next()) if self.next() else "its end"
        return ValueError(
            f"the formula {_short(self.text)!r} must have {expected} at part {self.at + 1}, found "
            f"{token}: rewrite it."
        )
