"""Truth tables and formulas: the dissertation's order of bits, and what is refused."""

import itertools

import numpy as np
import pytest

from inscape.boolean import (
    TruthTable,
    bent,
    disjunction,
    formula,
    fourier,
    from_bits,
    parity,
    points,
    random,
    table,
    variable,
    with_parity,
)


def test_parity_of_four_inputs_is_27030():
    assert parity(4).number == 27030
    assert str(parity(4)) == "0110100110010110"


def test_first_input_is_most_significant_and_changes_slowest():
    assert points(2).tolist() == [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    assert variable(1, 3).bits.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert variable(3, 3).bits.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_functions_do_what_their_names_say(n):
    for bits in itertools.product((False, True), repeat=n):
        assert parity(n)(*bits) == (sum(bits) % 2 == 1)
        assert disjunction(n)(*bits) == any(bits)
        assert [variable(k + 1, n)(*bits) for k in range(n)] == list(bits)


def test_number_and_bits_go_both_ways():
    for n in (1, 2, 3, 4, 7):
        function = random(n, seed=n)
        assert from_bits(function.bits) == function == table(function.number, n)
        np.testing.assert_array_equal(function.values, 2.0 * function.bits - 1)
        assert (~function).bits.tolist() == [1 - bit for bit in function.bits]
    assert random(6, seed=1) != random(6, seed=2)


def test_with_parity_is_the_function_xored_with_all_inputs():
    narrow = random(4, seed=5)
    wide = with_parity(narrow, 6)
    for bits in itertools.product((False, True), repeat=6):
        assert wide(*bits) == narrow(*bits[:4]) ^ (sum(bits) % 2 == 1)
    assert with_parity(table(0, 4), 10) == parity(10)
    assert with_parity(narrow, 4) == narrow ^ parity(4)


@pytest.mark.parametrize("n", [2, 4, 6, 8])
def test_bent_has_a_flat_spectrum(n):
    found = fourier(bent(n))
    assert set(found.coefficients.abs().tolist()) == {2.0 ** (-n / 2)}
    assert found.entropy == n


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("x1 and x2", "0001"),
        ("x1 | x2 & x3", "00011111"),
        ("x1 or x2 xor x3", "01101111"),
        ("x1 ^ x2 & x3", "00011110"),
        ("~(x1 | x2)", "1000"),
        ("not not X2", "0101"),
        ("!x1 & 1 | 0", "10"),
        ("1", "11"),
    ],
)
def test_formula(text, digits):
    assert str(formula(text)) == digits


def test_formula_agrees_with_python_on_random_formulas():
    rng = np.random.default_rng(0)

    def draw(depth):
        if depth == 0:
            return f"x{rng.integers(1, 5)}"
        kind = rng.integers(4)
        if kind == 3:
            return f"(~{draw(depth - 1)})"
        return f"({draw(depth - 1)} {'&|^'[kind]} {draw(depth - 1)})"

    for _ in range(40):
        text = draw(4)
        found = formula(text, 4)
        for bits in itertools.product((0, 1), repeat=4):
            names = {f"x{k + 1}": bit for k, bit in enumerate(bits)}
            assert found(*map(bool, bits)) == bool(eval(text, {}, names) & 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x1 x2", r"must have the end or a sign between two parts at part 2, found 'x2'"),
        ("x1 and", r"must have an input, 'not' or '\(' at part 3, found its end"),
        ("(x1", r"must have '\)' at part 3"),
        ("x0", r"a formula of 1 inputs may name x1 to x1, found x0"),
        ("x1 + x2", r"found '\+' in 'x1 \+ x2': rewrite it"),
        ("__import__('os')", r"a formula may hold x1, x2"),
        ("exec", r"found 'exec'"),
        ("(" * 60 + "x1", r"may be nested 50 deep, found more"),
        ("", r"found its end"),
        ("x" + "9" * 5000, r"found 'x9{76}\.\.\.' in 'x9{76}\.\.\.': rewrite it"),
        ("x1 " * 1000, r"^.{,200}$"),
    ],
)
def test_formula_refuses(text, message):
    with pytest.raises(ValueError, match=message):
        formula(text)


def test_formula_refuses_inputs_beyond_n():
    with pytest.raises(ValueError, match="of 3 inputs may name x1 to x3, found x4"):
        formula("x4", 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: table(0, 0), r"n must be from 1 to 20 inputs, found 0: a table has 2\^n values"),
        (lambda: parity(21), r"n must be from 1 to 20 inputs, found 21"),
        (lambda: table(16, 2), r"number from 0 to 2\^4 - 1, found 16: change the number"),
        (lambda: table(-1, 2), r"found -1"),
        (lambda: from_bits([0, 1, 1]), r"must have 2, 4, 8, 16, ... values, found 3"),
        (lambda: from_bits([0]), r"found 1: give one for each"),
        (lambda: from_bits([0, 2]), r"must hold 0 and 1 only, found 2"),
        (lambda: from_bits(np.array([0, 0.7])), r"must hold 0 and 1 only, found 0.7"),
        (lambda: from_bits(np.zeros((2, 2))), r"must hold 0 and 1 only, found \[0.0, 0.0\]"),
        (lambda: table(1 << (1 << 14), 14), r"found 0x1000\w+\.\.\. \(16385 bits\): change"),
        (lambda: bent(3), r"bent functions need an even number of inputs, found 3: take 4"),
        (lambda: variable(3, 2), r"must be one of x1 to x2, found x3"),
        (lambda: with_parity(parity(4), 3), r"at least the 4 inputs of the function, found 3"),
        (lambda: parity(2)(True), r"requires 2 inputs, found 1"),
        (lambda: parity(2) ^ parity(3), r"same inputs, found 2 and 3"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_tables_are_frozen_and_compared_by_value():
    assert TruthTable(2, 6) == parity(2)
    assert hash(TruthTable(2, 6)) == hash(parity(2))


@pytest.mark.usefixtures("unchecked")
def test_numbers_of_numpy_are_numbers():
    found = table(np.uint64(27030), 4)
    assert found == parity(4)
    assert type(found.number) is int
    assert found.bits.tolist() == parity(4).bits.tolist()
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        table(6.0, 2)


def test_long_numbers_are_shown_by_their_start():
    assert repr(parity(2)) == "TruthTable(n=2, number=6)"
    assert repr(variable(1, 14)) == "TruthTable(n=14, number=0xffffffffffff... (8192 bits))"


def test_variables_of_many_inputs_are_quick_and_right():
    for k in (1, 2, 13, 20):
        found = variable(k, 20).bits.reshape(1 << (k - 1), 2, -1)
        assert not found[:, 0].any()
        assert found[:, 1].all()
