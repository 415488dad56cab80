"""Programs that compute the final answers of ``algebra.yaml`` from the statements."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import sympy as sp
from scipy.optimize import minimize


def _least(function, dimension, starts=6, seed=0):
    """The least value of a smooth function on a whole space, from several starting points."""
    rng = np.random.default_rng(seed)
    best = math.inf
    for _ in range(starts):
        found = minimize(
            function, rng.normal(size=dimension), method="BFGS", options={"gtol": 1e-9}
        )
        best = min(best, float(found.fun))
    return best


def _shares(t, total):
    """Positive numbers with a given sum."""
    e = np.exp(t - np.max(t))
    return total * e / e.sum()


def _on_circle(allowed, length):
    """How many closed words of a length have only allowed neighbours, the ends being neighbours."""
    matrix = np.array(allowed, dtype=object)
    power = matrix
    for _ in range(length - 1):
        power = power.dot(matrix)
    return int(power.trace())


def _matrices_mod_7():
    return itertools.product(range(7), repeat=4)


def _times_mod_7(m, n):
    a, b, c, d = m
    e, f, g, h = n
    return (a * e + b * g) % 7, (a * f + b * h) % 7, (c * e + d * g) % 7, (c * f + d * h) % 7


def _solutions_of_power_mod_7(exponent):
    """How many 2 x 2 matrices over the field of 7 elements have this power equal to the identity."""
    count = 0
    for matrix in _matrices_mod_7():
        power = matrix
        for _ in range(exponent - 1):
            power = _times_mod_7(power, matrix)
        count += power == (1, 0, 0, 1)
    return count


def alg_001():
    def product(t):
        x = np.exp(t - t.mean())
        return np.sum(np.log(x + 2 * np.roll(x, -1)))

    return math.exp(_least(product, 6))


def alg_002():
    def total(t):
        x = _shares(t, 6)
        return np.sum(x**2 / (x + 2 * np.roll(x, -1)))

    return _least(total, 6)


def alg_003():
    def distance(t):
        x, y = np.exp(t)
        return float(np.log((x**5 + 64 * y**5 + 486) / (180 * x * y**2)))

    rng = np.random.default_rng(0)
    ends = [minimize(distance, rng.normal(size=2), options={"gtol": 1e-12}) for _ in range(6)]
    assert all(abs(end.fun) < 1e-12 for end in ends)
    (point,) = {tuple(np.round(np.exp(end.x), 4)) for end in ends}
    x, y = (sp.Rational(str(value)) for value in point)
    assert x**5 + 64 * y**5 + 486 == 180 * x * y**2
    return x, y


def alg_004():
    span = range(-120, 121)
    return {(x, y) for x in span for y in span if x**3 + 8 * y**3 - 18 * x * y == 36}


def alg_005():
    partner = {0: 1, 1: 0, 2: 3, 3: 2}
    return _on_circle([[int(partner[a] != b) for b in range(4)] for a in range(4)], 12)


def alg_006():
    ending = dict.fromkeys(range(6), 1)
    for _ in range(11):
        ending = {
            new: sum(n for old, n in ending.items() if not (old < 4 and new < 4))
            for new in range(6)
        }
    return sum(ending.values())


def alg_007():
    found = set()
    for twos in range(7):
        diagonal = sp.diag(*[2] * twos, *[3] * (6 - twos))
        change = sp.Matrix(6, 6, lambda i, j: i + j if j > i else int(i == j))
        matrix = change * diagonal * change.inv()
        assert matrix**2 == 5 * matrix - 6 * sp.eye(6)
        if matrix.trace() == 14:
            found.add((matrix + sp.eye(6)).det())
    (only,) = found
    return only


def alg_009():
    # A is similar to its square, so both have the same characteristic polynomial
    p, q, r, t = sp.symbols("p q r t")
    a = sp.Matrix([[0, 0, r], [1, 0, -q], [0, 1, p]])
    difference = sp.Poly((a.charpoly(t) - (a**2).charpoly(t)).as_expr(), t).all_coeffs()
    traces = set()
    for e1, e2, e3 in sp.solve(difference, [p, q, r]):
        roots = np.roots([complex(c) for c in (1, -e1, e2, -e3)])
        orders = itertools.permutations(range(3))
        assert any(np.allclose(roots[list(order)], roots**2, atol=1e-3) for order in orders)
        traces.add(e1)
    return traces


def alg_011():
    return _solutions_of_power_mod_7(10)


def alg_012():
    return _solutions_of_power_mod_7(7)


def alg_013():
    return sp.Matrix(10, 10, lambda i, j: i + j + 2 + (i == j)).det()


def alg_014():
    return sp.Matrix(6, 6, lambda i, j: (max(i, j) + 1) ** 2).det()


def alg_015():
    z = sp.Symbol("z")
    return sp.Poly(z**12 + z**7 + z**5 + 1, z).sqf_part().degree()


def alg_016():
    z = sp.Symbol("z")
    roots = sp.Poly(z**12 + z**7 + z**3 + 1, z).sqf_part().nroots(n=30)
    return sum(bool(abs(abs(root) - 1) < 1e-20) for root in roots)


def alg_017():
    omega = mpmath.expjpi(mpmath.mpf(2) / 11)
    total = sum(1 / (1 + omega**k + omega ** (2 * k)) for k in range(1, 11))
    assert abs(total.imag) < 1e-10
    return float(total.real)


def alg_018():
    return sp.Add(
        *(sp.Rational(2 ** (k - 1) * (k * k - 3 * k + 1), k**4 + k * k + 1) for k in range(1, 11))
    )


def alg_019():
    return sum(sp.binomial(20, k) * 2**k * sp.cos(2 * sp.pi * k / 3) for k in range(21))


def alg_020():
    return sum(sp.binomial(20, k) * 2**k / sp.Integer(k + 2) for k in range(21))


def alg_021():
    low, high = Fraction(0), Fraction(10**6)
    # every entry is p + q s, where s is the entry after the 5
    forward, backward = [(5, 0), (0, 1)], [(0, 1), (5, 0)]
    for _ in range(80):
        (p0, q0), (p1, q1) = forward[-2:]
        forward.append((p1 + 6 * p0, q1 + 6 * q0))
        (p2, q2), (p1, q1) = backward[-2:]
        backward.append((Fraction(p2 - p1, 6), Fraction(q2 - q1, 6)))
    for p, q in forward + backward:
        if q > 0:
            low = max(low, Fraction(-p) / q)
        elif q < 0:
            high = min(high, Fraction(-p) / q)
    assert low < high
    assert high - low < Fraction(1, 10**9)
    p, q = forward[4]
    return float(p + q * (low + high) / 2)


def alg_022():
    size = 60
    value = np.arange(1, size + 1)
    onwards = backwards = np.ones((size, size), dtype=bool)  # of two neighbours, up to 60
    for _ in range(200):
        # whether a pair has a next (a previous) neighbour depends on the least possible one
        least_next = np.where(onwards.any(1), onwards.argmax(1) + 1, 10**6)
        onwards = value[:, None] + 2 * least_next <= 3 * value
        least_before = np.where(backwards.any(0), backwards.argmax(0) + 1, 10**6)
        backwards = least_before[:, None] + 2 * value <= 3 * value[:, None]
    pairs = {(int(a), int(b)) for a, b in np.argwhere(onwards & backwards) + 1}
    rows = {(5,)}
    for _ in range(4):
        rows = {(*row, b) for row in rows for a, b in pairs if a == row[-1]}
    (only,) = {row[-1] for row in rows}
    return only


def alg_023():
    a, total = 2, mpmath.mpf(0)
    for _ in range(10):
        total += mpmath.atan(mpmath.mpf(1) / (a + 1))
        a = a * a + a + 1
    return float(total)


def alg_024():
    a = 2
    for _ in range(10):
        a = a * a + 2 * a
    return float(mpmath.root(mpmath.mpf(a), 2**10))


def alg_025():
    def negative(t):
        x2, y2, z2 = np.sin(t) ** 2 * np.array([10, 5, 13])
        return -(math.sqrt(x2 * (5 - y2)) + math.sqrt(y2 * (13 - z2)) + math.sqrt(z2 * (10 - x2)))

    return -_least(negative, 3)


def alg_026():
    best = 0.0
    for x in np.linspace(0, 1, 20001):
        # x^2 (1 - y^2) = (1/2 - y sqrt(1 - x^2))^2 is quadratic in y
        root = math.sqrt(1 - x * x)
        for sign in (1, -1):
            y = root / 2 + sign * math.sqrt(max(0.0, root * root / 4 - (0.25 - x * x)))
            if 0 <= y <= 1 and abs(x * math.sqrt(1 - y * y) + y * root - 0.5) < 1e-9:
                best = max(best, x + y)
    return float(best)


def alg_027():
    a = sp.Symbol("a")

    def step_preimages(c):
        roots = sp.solve(a**2 - c * a + c**2 - 3, a)
        real = [r for r in roots if r.is_real and abs(r) <= 2]
        return {r for r in real if sp.simplify((r + sp.sqrt(12 - 3 * r**2)) / 2 - c) == 0}

    fixed = {c for c in sp.solve(4 * a**2 - 12, a) if c in step_preimages(c)}
    reached = set(fixed)
    while True:
        more = reached.union(*(step_preimages(c) for c in reached))
        if more == reached:
            return reached
        reached = more


def alg_028():
    def root(q):
        numerator, denominator = math.isqrt(q.numerator), math.isqrt(q.denominator)
        assert numerator**2 == q.numerator
        assert denominator**2 == q.denominator
        return Fraction(numerator, denominator)

    def rule(a, b):
        return 3 * (a + 1) * (b + 1) * (a + b + 1) - 40 * a * b

    before, now = Fraction(1), Fraction(3)
    assert rule(before, now) == 0
    for _ in range(2022):
        constant = rule(now, 0)
        square = (rule(now, 1) + rule(now, -1)) / 2 - constant
        linear = (rule(now, 1) - rule(now, -1)) / 2
        d = root(linear**2 - 4 * square * constant)
        (after,) = {(-linear + d) / (2 * square), (-linear - d) / (2 * square)} - {before}
        assert rule(now, after) == 0
        before, now = now, after
    return sp.Rational(now.numerator, now.denominator)


def alg_029():
    x, y, z = sp.symbols("x y z")
    f = x**2 + 5 * y**2 + 10 * z**2 - 4 * x * y - 6 * y * z - 2 * z + 1
    assert sp.hessian(f, (x, y, z)).is_positive_definite
    ((point),) = sp.solve([f.diff(v) for v in (x, y, z)], [x, y, z], dict=True)
    assert f.subs(point) == 0
    return point[x], point[y], point[z]


def alg_030():
    span = range(-25, 26)
    found = {
        (x, y, z)
        for x in span
        for y in span
        for z in span
        if x * x + 8 * y * y + 7 * z * z == 14 * x * y * z
    }
    (only,) = found
    return only


def alg_031():
    span = range(-60, 61)
    return sum(2 * x * x - 6 * x * y + 5 * y * y <= 10 for x in span for y in span)


def alg_032():
    span = range(-120, 121)
    return sum(x * x - 6 * x * y + 8 * y * y == 15 for x in span for y in span)


def alg_033():
    def negative(t):
        x = t - t.mean()
        x = x * math.sqrt(40 / np.sum(x * x))
        return -float(x @ np.arange(1, 6))

    return -_least(negative, 5)


def alg_034():
    return max(
        sum(k * x for k, x in enumerate(xs, 1))
        for xs in itertools.permutations(range(-4, 5), 5)
        if sum(xs) == 0
    )


def alg_035():
    best = {0: Fraction(0)}
    for k in range(1, 10):
        new = {}
        for used, total in best.items():
            for a in range(1, 10):
                if not used >> a & 1:
                    key = used | 1 << a
                    new[key] = max(new.get(key, Fraction(0)), total + Fraction(a, k))
        best = new
    (only,) = best.values()
    return sp.Rational(only.numerator, only.denominator)


def alg_036():
    k = np.arange(1, 10)

    def total(t):
        shift = (2 * np.sum(k * np.log(k)) - np.sum(k * t)) / np.sum(k)
        return float(np.sum(np.exp(t + shift) / k))

    return _least(total, 9)


def alg_037():
    # c_k = d_0 + ... + d_k with d_j >= 0: a linear programme on a simplex, least at a corner
    return min(Fraction(22, 11 - j) * sum(2**k for k in range(j, 11)) for j in range(11)).numerator


def alg_038():
    values = np.vander([1.0, -1.0], 11, increasing=True)
    shortest = np.linalg.lstsq(values, np.array([22.0, 62.0]), rcond=None)[0]
    assert np.allclose(values @ shortest, [22, 62])
    return float(shortest @ shortest)


def alg_039():
    c = sp.symbols("c0:9")

    def value(x):
        return sum(a * x**k for k, a in enumerate(c)) + sp.Integer(x) ** 9

    (general,) = sp.linsolve([value(k) - value(9 - k) for k in range(1, 5)], c)
    return sp.expand((value(9) - value(0)).subs(dict(zip(c, general, strict=True))))


def alg_040():
    x = np.arange(-40, 41)
    found = set()
    small = range(-6, 7)
    for cubic, square in itertools.product(small, small):
        # P(8) = P(1) fixes the linear coefficient and P(1) = 4 the constant one
        linear = -9 * square - 73 * cubic
        constant = 4 - linear - square - cubic
        values = ((cubic * x + square) * x + linear) * x + constant
        assert {int(values[x == 1][0]), int(values[x == 8][0])} == {4}
        found |= {int(n) for n in x[values == x * x]}
    return found


def alg_041():
    x = sp.Integer(5)
    for _ in range(10):
        x = (3 * x + 2) / (x + 2)
    return x


def alg_042():
    x, product = sp.Integer(4), sp.Integer(1)
    for _ in range(10):
        product *= x
        x = (5 * x - 6) / x
    return product


def alg_043():
    root = mpmath.sqrt(3)
    return float(sum((k * k - k) / (mpmath.mpf(3) ** k + root) for k in range(-9, 11)))


def alg_044():
    three = sp.Rational(3)
    return sum(three**k / ((1 + three**k) * (1 + three ** (k + 1))) for k in range(-10, 10))


def alg_045():
    def consequences(known):
        # f(a) = b gives f(b) = 4a - 9; None if a number would have two images
        known, new = dict(known), list(known.items())
        for _ in range(40):
            new = [(b, 4 * a - 9) for a, b in new]
            if any(known.setdefault(a, b) != b for a, b in new):
                return None
        return known

    candidates = [Fraction(n, 4) for n in range(-400, 401)]
    possible = {b: known for b in candidates if (known := consequences({3: b, 5: Fraction(2)}))}
    ((at_three, known),) = possible.items()
    assert at_three.denominator == known[35].denominator == 1
    return int(at_three + known[35])


def alg_047():
    def total(t):
        x = _shares(t, 2)
        return float(np.sum(x * np.log1p(x)))

    return math.exp(_least(total, 4))


def alg_048():
    x, c, k = sp.symbols("x c k")
    line = k * x + c
    equation = sp.Poly(k * line + c + 2 * line + x - 6, x)
    assert sp.solve(equation.all_coeffs(), [k, c]) == [(-1, 3)]
    # no piecewise linear function that bends at the fixed point solves the equation
    for left, right in itertools.product([Fraction(n, 4) for n in range(-12, 13)], repeat=2):
        if left == right:
            continue

        def bent(t, left=left, right=right):
            s = t - Fraction(3, 2)
            return Fraction(3, 2) + (left if s < 0 else right) * s

        assert any(bent(bent(t)) + 2 * bent(t) + t != 6 for t in (-7, -2, 0, 1, 2, 5, 11))
    return "$f(x)=3-x$"


def alg_049():
    f = {pair: sp.Symbol(f"f{pair[0]}{pair[1]}") for pair in itertools.product((3, 7), repeat=2)}
    equations = [
        f[x, y]
        + 2 * f[y, z]
        + 3 * f[z, x]
        - (y**2 + z**2 - 2 * x**2 + x * y + 2 * y * z + 3 * z * x)
        for x, y, z in itertools.product((3, 7), repeat=3)
    ]
    return sp.solve(equations, list(f.values()))[f[7, 3]]


def alg_050():
    unknown = {k: sp.Symbol(f"f{k}" if k >= 0 else f"g{-k}") for k in range(-6, 7)}
    known = {1: sp.Integer(7)}
    while len(known) < len(unknown):
        for m, n in itertools.product(unknown, repeat=2):
            if max(abs(m + n), abs(m - n)) > 6:
                continue
            f = {k: known.get(k, unknown[k]) for k in (m, n, m + n, m - n)}
            rule = f[m + n] + sp.Integer(10) ** n * f[m - n] - f[m] * f[n]
            missing = rule.free_symbols
            if len(missing) == 1:
                (symbol,) = missing
                values = sp.solve(rule, symbol)
                if len(values) == 1:
                    known[{s: k for k, s in unknown.items()}[symbol]] = values[0]
            else:
                assert missing or rule == 0
    return known[6]


def alg_052():
    def times(a, b):
        product = 0
        while b:
            if b & 1:
                product ^= a
            a <<= 1
            if a & 128:
                a ^= 0b10000011
            b >>= 1
        return product

    def power(a, n):
        result = 1
        for _ in range(n):
            result = times(result, a)
        return result

    third = [power(a, 3) for a in range(128)]
    fifth = [power(a, 5) for a in range(128)]
    sixth = [power(a, 6) for a in range(128)]
    how_often = [0] * 128
    for a, b in itertools.product(third, fifth):
        how_often[a ^ b] += 1
    return sum(how_often[c ^ 1] for c in sixth)


def alg_054():
    def orders_of_permutations(degree):
        found = set()
        for permutation in itertools.permutations(range(degree)):
            here, order = permutation, 1
            while here != tuple(range(degree)):
                here, order = tuple(permutation[i] for i in here), order + 1
            found.add(order)
        return found

    def orders_in_a_cycle(length):
        return {length // math.gcd(length, k) for k in range(length)}

    groups = [  # several groups of the size in question, as products of their factors
        [orders_of_permutations(6), orders_in_a_cycle(72)],
        [orders_of_permutations(5), *[orders_of_permutations(3)] * 3, orders_in_a_cycle(2)],
        [*[orders_of_permutations(4)] * 2, orders_in_a_cycle(90)],
        [orders_in_a_cycle(51840)],
    ]
    found = set()
    for factors in groups:
        orders = {math.lcm(*parts) for parts in itertools.product(*factors)}
        found |= {order for order in orders if order > 1 and 154 % order == 0}
    (only,) = found
    return only


def alg_055():
    doors, card = range(1, 10), {}

    def walk(door):
        for _ in range(3):
            door = card.get(door)
        return door

    def labellings():
        if any(walk(door) not in (None, 10 - door) for door in card):
            return 0
        if len(card) == 9:
            return 1
        empty = [door for door in doors if door not in card]
        door = next((n for n in card.values() if n in empty), empty[0])
        count = 0
        for number in doors:
            card[door] = number
            count += labellings()
            del card[door]
        return count

    return labellings()


def alg_056():
    span = range(-12, 13)

    def solves(f):
        return all(f(f(m) + n) == 4 * m + f(n) for m in span for n in span)

    good = set()
    for slope in range(-5, 6):
        for bends in itertools.product(range(-2, 3), repeat=4):
            if solves(lambda n, slope=slope, bends=bends: slope * n + bends[n % 4]):
                good.add((slope, bends))
    assert good == {(2, (0, 0, 0, 0)), (-2, (0, 0, 0, 0))}
    return "$f(n)=2n$ and $f(n)=-2n$"


def alg_057():
    cells = list(itertools.product(range(4), repeat=3))
    slabs = [
        sum(1 << i for i, cell in enumerate(cells) if cell[axis] == level)
        for axis in range(3)
        for level in range(4)
    ]
    patterns = {0}
    for slab in slabs:
        patterns |= {pattern ^ slab for pattern in patterns}
    return len(patterns)


def alg_058():
    return sum(
        (4 * a + 6 * b) % 30 == 0 and (6 * a + 4 * b) % 30 == 0
        for a in range(30)
        for b in range(30)
    )


def alg_059():
    twos = [(16,), (2, 8), (4, 4), (2, 2, 4), (2, 2, 2, 2)]
    threes = [(9,), (3, 3)]
    found = set()
    for two, three in itertools.product(twos, threes):
        moduli = (*two, *three, 5)
        how_often = {}
        for element in itertools.product(*map(range, moduli)):
            power = tuple(6 * a % m for a, m in zip(element, moduli, strict=True))
            how_often[power] = how_often.get(power, 0) + 1
        if len(how_often) == 20:
            found.add(sum(n * n for n in how_often.values()))
    (only,) = found
    return only


def alg_060():
    return len(
        {
            tuple(sum(c * x**k for k, c in enumerate(p)) % 6 for x in (0, 2, 4))
            for p in itertools.product(range(6), repeat=5)
        }
    )


def alg_061():
    rows = []
    for i in range(7):
        for j in range(5):
            across, down = np.zeros((7, 7)), np.zeros((7, 7))
            across[i, j : j + 3] = 1
            down[j : j + 3, i] = 1
            rows += [across.ravel(), down.ravel()]
    return 49 - int(np.linalg.matrix_rank(np.array(rows)))


def alg_062():
    rng = np.random.default_rng(0)

    def has_one(space):
        """Whether some combination of the matrices is symmetric with zero row sums."""
        skew = space - space.transpose(0, 2, 1)
        conditions = np.hstack([skew.reshape(len(space), 25), space.sum(axis=2)])
        return np.linalg.matrix_rank(conditions) < len(space)

    return next(
        d
        for d in range(1, 26)
        if all(has_one(rng.integers(-9, 10, size=(d, 5, 5)).astype(float)) for _ in range(5))
    )


def alg_063():
    # the least trace of the inverse is 2, so that the eigenvalues are those of the minimum
    starts = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        found = minimize(
            lambda t: float(np.sum(1 / _shares(t, 8))), rng.normal(size=4), options={"gtol": 1e-12}
        )
        assert abs(found.fun - 2) < 1e-10
        starts.append(float(np.sum(_shares(found.x, 8) ** 3)))
    return max(starts)


def alg_064():
    a, b, c = sp.symbols("a b c")
    matrix = sp.Matrix([[0, 0, a], [1, 0, b], [0, 1, c]])
    conditions = [(matrix**k).trace() - value for k, value in ((1, 1), (2, 11), (3, 13))]
    (solution,) = sp.solve(conditions, [a, b, c], dict=True)
    return (matrix + 2 * sp.eye(3)).subs(solution).det()


def alg_067():
    n = sp.Matrix([[int(j > i) for j in range(8)] for i in range(8)])
    one = sp.eye(8)
    return ((one + n) * (one + n**2) * (one + n**4))[0, 7]


def alg_068():
    return sum((k**3 + k - 1) * sp.factorial(k) for k in range(1, 13))


def alg_069():
    x = sp.Symbol("x")
    y = 2 * x**2 - 1
    return sp.Poly(sp.expand(4 * y**3 - 3 * y - x), x).sqf_part().count_roots()


def alg_070():
    def displayed(x):
        numbers = [1, x]
        for _ in range(10):
            numbers.append(2 * x * numbers[-1] - numbers[-2])
        return np.max(np.array(numbers[1:]), axis=0)

    low, high = -2.0, 2.0
    for _ in range(4):
        grid = np.linspace(low, high, 20001)
        place = grid[int(np.argmin(displayed(grid)))]
        low, high = place - (high - low) / 5000, place + (high - low) / 5000
    return float(displayed(np.array([place]))[0])


def alg_071():
    x = sp.Symbol("x")
    points = [(k, sp.Rational(k, k * k + 1)) for k in range(-2, 3)]
    return sp.interpolate(points, x).subs(x, 3)


def alg_072():
    return sum(
        sp.Rational(k**7, math.prod(k - j for j in range(1, 7) if j != k)) for k in range(1, 7)
    )


def alg_073():
    coefficients = np.array(list(itertools.product(range(5), repeat=7)))
    good = np.ones(len(coefficients), dtype=bool)
    for a in range(1, 5):
        values = coefficients @ np.array([a**k for k in range(7)])
        good &= a * values % 5 == 1
    return int(good.sum())


def alg_074():
    x = sp.Symbol("x")
    reported = dict(enumerate((3, 6, 11, 0, 27, 38, 5), 1))
    found = set()
    for three in itertools.combinations(reported, 3):
        candidate = sp.interpolate([(k, reported[k]) for k in three], x)
        if sum(sp.sympify(candidate).subs(x, k) == v for k, v in reported.items()) >= 5:
            found.add(sp.sympify(candidate).subs(x, 10))
    (only,) = found
    return only


def alg_075():
    x, p, q, r, s = sp.symbols("x p q r s")
    dividend = x**4 + p * x**3 + q * x**2 + r * x + s
    kim, lea, max_ = (
        sp.rem(dividend, divisor, x)
        for divisor in (x**2 - 3 * x + 2, x**2 - 5 * x + 6, x**2 - 2 * x - 3)
    )
    conditions = [*sp.Poly(kim - lea, x).coeffs(), *sp.Poly(lea - max_, x).coeffs()]
    conditions += [dividend.subs(x, 0) - 1, dividend.subs(x, 4) - 45]
    (solution,) = sp.solve(conditions, [p, q, r, s], dict=True)
    return sp.expand(kim.subs(solution))


def alg_076():
    matrix = sp.Matrix([[0, 2], [1, 1]])
    assert matrix**2 == matrix + 2 * sp.eye(2)
    a, b = sp.symbols("a b")
    solution = sp.solve(list(matrix**10 - a * matrix - b * sp.eye(2)), [a, b])
    return solution[a], solution[b]


def alg_077():
    x, p, q, r = sp.symbols("x p q r")
    circle = x**2 + (6 / x) ** 2 + p * x + q * 6 / x + r
    through = [(1, 6), (2, 3), (-3, -2)]
    found = sp.solve([a**2 + b**2 + p * a + q * b + r for a, b in through], [p, q, r])
    roots = sp.Poly(sp.expand(circle.subs(found) * x**2), x).real_roots()
    (fourth,) = set(roots) - {1, 2, -3}
    return fourth, 6 / fourth


def alg_078():
    span = range(-150, 151)
    found = set()
    for r in span:
        for s in span:
            t = -r - s
            m = -(r * s + s * t + t * r)
            if r * s * t == -2 * m:
                found.add(m)
    return found


def alg_079():
    def negative(t):
        u = t - t.mean() + 0.3
        return -float((u.sum() ** 2 - np.sum(u * u)) / 2)

    return -_least(negative, 10)


def alg_080():
    x, a, d, slope, height = sp.symbols("x a d slope height", real=True)
    difference = sp.Poly(x**4 - 8 * x**3 + 14 * x**2 + 3 * x - slope * x - height, x)
    spread = sp.Poly(sp.prod(x - a - k * d for k in (-3, -1, 1, 3)), x)
    conditions = (difference - spread).all_coeffs()
    found = {
        (s[slope], s[height])
        for s in sp.solve(conditions, [a, d, slope, height], dict=True)
        if s[d] != 0
    }
    ((m, q),) = found
    return m * x + q


def alg_081():
    t = sp.Symbol("t")
    a, b, c = sp.Poly(t**3 - 2 * t**2 + 3 * t - 5, t).nroots(n=30)
    return float(sp.re((a**2 + b * c) * (b**2 + c * a) * (c**2 + a * b)))


def alg_082():
    a, b, c = -5.0, 0.0, 5.0
    one, two, three = (a**k + b**k + c**k for k in (1, 2, 3))
    # x, y, z: the same first two power sums, the third smaller by 12 (Newton's identities)
    pairs = (one**2 - two) / 2
    product = (three - 12 - one * two + pairs * one) / 3
    x, y, z = np.roots([1, -one, pairs, -product])
    assert np.isrealobj(np.array([x, y, z]))
    assert abs(x**3 + y**3 + z**3 - (three - 12)) < 1e-9
    assert abs(x**2 + y**2 + z**2 - two) < 1e-9
    return float((a - x) * (a - y) * (a - z))


def alg_083():
    def root(x):
        s = x * x + 5 * x
        cube = [mpmath.sign(v) * mpmath.cbrt(abs(v)) for v in (s, 26 - s)]
        return cube[0] + cube[1] - 2

    grid = [mpmath.mpf(k) / 10 + mpmath.mpf("0.037") for k in range(-120, 120)]
    product, count = mpmath.mpf(1), 0
    for left, right in itertools.pairwise(grid):
        if root(left) * root(right) < 0:
            product *= mpmath.findroot(root, (left, right), solver="anderson")
            count += 1
    assert count == 4
    return float(product)


def alg_084():
    x = sp.Symbol("x")
    return set(sp.Poly(x**4 + x**3 - 8 * x**2 + 2 * x + 4, x).real_roots())


def alg_085():
    def negative(t):
        x, y, z = _shares(t, 12)  # b + c - a and so on; they add up to the perimeter
        return -(math.log(x) + 2 * math.log(y) + 3 * math.log(z))

    return math.exp(-_least(negative, 3))


def alg_086():
    x, y = sp.symbols("x y", real=True)
    f = x**4 - 6 * x**2 * y + 10 * y**2 - 4 * y + 1
    points = sp.solve([f.diff(x), f.diff(y)], [x, y], dict=True)
    return min(sp.simplify(f.subs(point)) for point in points)


def alg_088():
    k = sp.Symbol("k", positive=True)
    form = sp.Matrix([[1, -k / 2, 0], [-k / 2, 2, -k / 2], [0, -k / 2, 3]])
    (edge,) = sp.solve(form.det(), k)
    assert form.subs(k, edge * sp.Rational(99, 100)).is_positive_definite
    assert not form.subs(k, edge * sp.Rational(101, 100)).is_positive_semidefinite
    return edge


def alg_089():
    return -_least(lambda t: -float(np.sum((x := _shares(t, 4)) / (x * x + 3))), 4)


def alg_090():
    best = {0: 0}
    for _ in range(12):
        new = {}
        for load, total in best.items():
            for half_kilos in range(15):
                key = load + half_kilos
                if key <= 62:
                    new[key] = max(new.get(key, 0), total + half_kilos**3)
        best = new
    return sp.Rational(best[62], 8)


def alg_091():
    v = sp.Symbol("v")
    slopes = [sp.Integer(-3), v - 2, (8 - v) / 2, sp.Integer(4)]
    values = sp.Interval(-100, 100)
    for left, right in itertools.pairwise(slopes):
        values = values.intersect(
            sp.solve_univariate_inequality(left <= right, v, relational=False)
        )
    return values.inf, values.sup


def alg_092():
    def heat(t):
        a, b = t
        return 3 * a * a + 4 * b * b + 6 * (12 - a - b) ** 2

    return _least(heat, 2)


def alg_093():
    size = 6
    hilbert = sp.Matrix(size, size, lambda i, j: sp.Rational(1, i + j + 1))
    sides = sp.Matrix(2, size, lambda i, j: sp.Rational(1, j + 1 + 2 * i))
    inverse = hilbert.inv()
    values = sp.Matrix([0, 1])
    return (values.T * (sides * inverse * sides.T).inv() * values)[0]


def alg_096():
    ways = [1, 0, 0, 0, 0, 0]
    for _ in range(10):
        ways = [ways[i] + ways[i - 1] + ways[(i + 1) % 6] for i in range(6)]
    return ways[0]


def alg_097():
    states = {(0, 0): 1}
    for _ in range(8):
        new = {}
        for (first, second), count in states.items():
            for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1), (0, 0)):
                key = ((first + a) % 3, (second + b) % 3)
                new[key] = new.get(key, 0) + count
        states = new
    return states[0, 0]


def alg_098():
    a = [1.0]
    for n in range(1, 11):
        target = math.comb(n + 3, 3) * 2**n
        a.append((target - sum(a[k] * a[n - k] for k in range(1, n))) / (2 * a[0]))
    return a[10]


def alg_099():
    def image(x, y):  # numbers a + b sqrt(3) as pairs (a, b)
        return x[0] ** 2 + 3 * x[1] ** 2 - 2 * x[0] - y[0], 2 * x[0] * x[1] - 2 * x[1] - y[1]

    def smallest_set_with(x):
        found = {x}
        while len(found) < 12:
            new = {image(a, b) for a in found for b in found} - found
            if not new:
                return frozenset(found)
            found |= new
        return None

    halves = [Fraction(k, 2) for k in range(-12, 13)]
    minimal = {smallest_set_with(x) for x in itertools.product(halves, repeat=2)} - {None}
    closed = set()
    for size in range(1, len(minimal) + 1):
        for parts in itertools.combinations(minimal, size):
            union = frozenset().union(*parts)
            if all(image(a, b) in union for a in union for b in union):
                closed.add(union)
    assert closed == {frozenset({(0, 0)}), frozenset({(4, 0)}), frozenset({(1, -1), (1, 1)})}
    return r"$\{0\}$, $\{4\}$ and $\{1-\sqrt{3}, 1+\sqrt{3}\}$"


def alg_100():
    def even(m, n):
        a, b, c, d = ((x - y) % 2 for x, y in zip(m, n, strict=True))
        return (a * d - b * c) % 2 == 0

    matrices = list(itertools.product(range(2), repeat=4))

    def avoids(size):
        return any(
            not any(even(m, n) for m, n in itertools.combinations(chosen, 2))
            for chosen in itertools.combinations(matrices, size)
        )

    return next(size for size in range(2, 17) if not avoids(size))


def alg_102():
    ways = [1, 0, 0, 0, 0, 0]
    for _ in range(10):
        ways = [sum(ways) - here for here in ways]
    return ways[0]


def alg_103():
    rotation = sp.eye(5)
    for i, j in ((0, 2), (1, 3), (2, 4), (0, 1)):
        turn = sp.eye(5)
        turn[i, i], turn[i, j] = sp.Rational(3, 5), sp.Rational(-4, 5)
        turn[j, i], turn[j, j] = sp.Rational(4, 5), sp.Rational(3, 5)
        rotation = rotation * turn
    a = np.array(rotation * sp.diag(1, 1, 2, 2, 2) * rotation.T, dtype=float)
    one = np.eye(5)
    condition = np.kron(one, a) + np.kron(a.T, one) - 3 * np.eye(25)
    return 25 - int(np.linalg.matrix_rank(condition, tol=1e-9))


def alg_104():
    def sequence(first, second, p, q):
        terms = [first, second]
        while len(terms) < 9:
            terms.append(p * terms[-1] + q * terms[-2])
        return terms

    spanning = sp.Matrix(
        [sequence(*ends, p, q) for ends in ((1, 0), (0, 1)) for p, q in ((3, -2), (5, -6))]
    )
    size = 1
    while True:
        for places in itertools.combinations(range(9), size):
            if spanning[:, list(places)].rank() == spanning.rank():
                return size
        size += 1


def alg_105():
    rows = [[Fraction(1)]]
    for _ in range(5):
        rows = [row + row for row in rows] + [row + [-2 * entry for entry in row] for row in rows]
    determinant = Fraction(1)
    while rows:
        place = next(i for i, row in enumerate(rows) if row[0])
        top = rows.pop(place)
        determinant *= top[0] * (-1) ** place
        rows = [
            [x - row[0] / top[0] * y for x, y in zip(row[1:], top[1:], strict=True)] for row in rows
        ]
    return int(determinant)


def alg_106():
    best = 0
    for u in range(77):
        if math.gcd(u, 77) == 1:
            best = max(best, len({pow(u, k, 77) for k in range(1, 78)}))
    return best
