"""Programs that compute the final answers of the calculus and analysis problems again."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import sympy as sp


def _limit(term: Callable[[int], float], start: int, levels: int = 4) -> float:
    """Limit of a sequence with an expansion in powers of 1/n, by extrapolation from n, 2n, 4n, ..."""
    row = [term(start * 2**j) for j in range(levels)]
    for order in range(1, levels):
        row = [(2**order * b - a) / (2**order - 1) for a, b in itertools.pairwise(row)]
    return float(row[-1])


def _maximum(f: Callable[..., float], *ranges: tuple[float, float], grid: int = 24) -> float:
    """Largest value of ``f`` on a box: a grid whose mesh shrinks about its best point."""
    box = list(ranges)
    best = -math.inf
    for _ in range(40):
        points = [()]
        for low, high in box:
            steps = [low + (high - low) * i / grid for i in range(grid + 1)]
            points = [(*p, s) for p in points for s in steps]
        value, at = max((f(*p), p) for p in points)
        best = max(best, value)
        box = [
            (max(low, a - 2 * (h - g) / grid), min(high, a + 2 * (h - g) / grid))
            for (low, high), (g, h), a in zip(ranges, box, at, strict=True)
        ]
    return best


def _largest_with_bounded_derivative(order, ends, conditions, target, bound, cells=400):
    """Largest value of a linear ``target`` under linear ``conditions`` and |f^(order)| <= ``bound``.

    The derivative is taken constant on each of the ``cells``; a polynomial of lower degree is added
    so that the conditions hold, and the shares of the cells, which are independent, add up.
    """
    low, high = map(Fraction, ends)
    knots = [low + (high - low) * i / cells for i in range(cells + 1)]

    def falling(degree, k):  # the factor that k derivatives bring down
        return math.prod(range(degree - k + 1, degree + 1))

    def power(degree, start=None):  # x^degree, or its part (x - start)^degree beyond start
        def function(x, k=0):
            if k > degree or (start is not None and x <= start):
                return 0
            return falling(degree, k) * (x - (start or 0)) ** (degree - k)

        return function

    def shares(functional):
        steps = [functional(power(order, knot)) for knot in knots]
        cell = [Fraction(a - b) / math.factorial(order) for a, b in itertools.pairwise(steps)]
        return [functional(power(d)) for d in range(order)], cell

    rows, goal = [shares(condition) for condition in conditions], shares(target)
    polynomials = sp.Matrix([[sp.Rational(v) for v in row] for row, _ in rows])
    wanted = sp.Matrix([sp.Rational(v) for v in goal[0]])
    weights = polynomials.T.gauss_jordan_solve(wanted)[0]
    weights = [Fraction(int(w.p), int(w.q)) for w in weights]
    return bound * float(
        sum(
            abs(value - sum(w * row[1][i] for w, row in zip(weights, rows, strict=True)))
            for i, value in enumerate(goal[1])
        )
    )


def cal_001():
    return _limit(
        lambda n: sum((2 * n + k) / (n * n + 4 * n * k + k * k) for k in range(1, n + 1)), 500
    )


def cal_002():
    return float(
        mpmath.quad(lambda x: mpmath.atan(x**3) / (x * x - x + 1), [0, 1, 4, 20, mpmath.inf])
    )


def cal_004():
    p = 1200.0
    for _ in range(200):
        p = 3 * p / (1 + p / 500) - 150
    return p


def cal_005():
    steps = (mpmath.mpf(1) / ((2 * n + 1) * (2 * n + 3) * (2 * n + 5)) for n in range(4000))
    return float(sum((-1) ** n * step for n, step in enumerate(steps)))


def cal_006():
    h = sp.symbols("h", positive=True)
    time = 3 * h**2 / sp.sqrt(h)  # minutes per unit of depth, up to a constant
    quarter = sp.Rational(1, 4)
    return 31 * sp.integrate(time, (h, 0, quarter)) / sp.integrate(time, (h, quarter, 1))


def cal_007():
    def value(y, z):
        rest = 98 - y**4 - z**4
        return rest**0.25 + 8 * y + 27 * z if rest >= 0 else -math.inf

    return _maximum(value, (-3.2, 3.2), (-3.2, 3.2))


def cal_008():
    values = [
        math.cos(math.pi * x) - x * x / 50 for x in (i / 1000 + 1e-5 for i in range(-8000, 8000))
    ]
    return sum(a * b < 0 for a, b in itertools.pairwise(values))


def cal_009():
    def term(n, a, b):
        return n**1.5 * (mpmath.cbrt(1 + 1 / n) - (n + a) / (n + b))

    def converges(a, b):  # Cauchy's condensation: n times the term, at n = 4^10, 4^12, ..., fades
        sizes = [abs(4**k * term(mpmath.mpf(4) ** k, a, b)) for k in (10, 12, 14, 16)]
        return all(later < 0.9 * sooner for sooner, later in itertools.pairwise(sizes))

    with mpmath.workdps(60):
        # the one pair that makes the terms vanish at two far places is close to a limit pair
        n, m = mpmath.mpf(10) ** 9, mpmath.mpf(10) ** 10
        start = (mpmath.mpf("0.5"), mpmath.mpf("0.2"))
        a, b = mpmath.findroot(
            lambda a, b: [(n + b) * term(n, a, b), (m + b) * term(m, a, b)], start, tol=1e-40
        )
        pair = tuple(sp.Rational(round(60 * c), 60) for c in (a, b))
        assert max(abs(a - pair[0]), abs(b - pair[1])) < 1e-8
        grid = [mpmath.mpf(i) / 12 for i in range(1, 13)]
        good = [(a, b) for a in grid for b in grid if converges(a, b)]
        (found,) = good
        assert max(abs(found[0] - pair[0]), abs(found[1] - pair[1])) < 1e-12
    return pair


def cal_010():
    def mean(n):
        logs = (k * math.log((n + 3 * k) / (n + k)) for k in range(1, n + 1))
        return math.exp(math.fsum(logs) / n**2)

    return _limit(mean, 500)


def cal_011():
    x, y = 40.0, -7.0
    for _ in range(100):
        x, y = -y / 2 + 3, x / 2
    return (x, y)


def cal_012():
    x = sp.symbols("x", real=True)
    left, low, high, right = (sp.log(sp.Rational(*q)) / 2 for q in ((2, 3), (2, 1), (8, 3), (8, 1)))
    pieces = (
        (3 * sp.exp(x) - 2 * sp.exp(-x), left, low),
        (3 * sp.exp(x) - sp.exp(x), low, high),
        (8 * sp.exp(-x) - sp.exp(x), high, right),
    )
    return float(sum(sp.integrate(height, (x, start, end)) for height, start, end in pieces))


def cal_014():
    def integral(n):
        return mpmath.quad(
            lambda x: n * mpmath.sqrt(4 + x + x**5) / ((1 + n * x) * (1 + 2 * n * x)),
            [0, *(mpmath.mpf(10) ** k for k in range(-11, 1))],
        )

    return float(integral(mpmath.mpf(10) ** 9))


def cal_015():
    return _limit(lambda n: sum((2 * n + k) / (n * n + 4 * k + 1) for k in range(1, n + 1)), 500)


def cal_016():
    return float(mpmath.quad(lambda x: mpmath.atan(x) / (1 + x) ** 3, [0, 1, 5, 50, mpmath.inf]))


def cal_018():
    def place(n):
        return float(sum(Fraction(1, (2 * k + 1) * (2 * k + 3) * (2 * k + 5)) for k in range(n)))

    return _limit(place, 50)


def cal_019():
    def value(y, z):
        rest = 794 - y * y - z * z
        return math.sqrt(rest) + 8 * y + 27 * z if rest >= 0 else -math.inf

    return _maximum(value, (-28.2, 28.2), (-28.2, 28.2))


def cal_020():
    return _limit(lambda n: math.prod((n * n + 3 * k) / (n * n + k) for k in range(1, n + 1)), 500)


def cal_022():
    return float(
        mpmath.quad(lambda x: (1 - x) * (1 - x**3) / mpmath.log(x) ** 2, [0, 1e-6, 0.01, 0.5, 1])
    )


def cal_023():
    return -_maximum(lambda v: -(25 + v**3) / (v - 3), (3.001, 40.0))


def cal_024():
    last = 10**6
    total = 0.0
    for n in range(10, last, 10):
        digits = str(n)
        total += (len(digits) - len(digits.rstrip("0"))) / n**2
    return total + 1 / (9 * last)  # on average a number has 1/9 of a final zero


def cal_027():
    x = sp.symbols("x", positive=True)
    candidate = 2 * x**2 / 3 + 1 / (3 * x)
    formula = sp.lambdify(x, candidate)
    # The equation itself, solved from the left by the trapezoidal rule.
    steps, size = 20000, 2 / 20000
    values, first, second = [1.0], 0.5, 0.5  # sums of f / t^2 and f / t, the left end halved
    for i in range(1, steps + 1):
        t = 1 + i * size
        values.append(t + 2 * size * (t * first - second))  # the kernel vanishes at t = x
        first += values[-1] / t**2
        second += values[-1] / t
    assert all(abs(values[i] - formula(1 + i * size)) < 1e-6 for i in range(0, steps + 1, 500))
    return candidate


def cal_028():
    points = [((i / 1500), (i / 1500) ** 2) for i in range(1501)]  # (sqrt x, x)

    def error(a):
        return max(abs(root - a * x) for root, x in points)

    low, high = 0.0, 4.0  # a maximum of convex functions of a is convex: shrink the interval
    for _ in range(60):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if error(one) < error(two) else (one, high)
    return error(low)


def cal_029():
    return _largest_with_bounded_derivative(
        order=3,
        ends=(-2, 2),
        conditions=[lambda f: f(2) - f(-2)],
        target=lambda f: f(0, 1),
        bound=6,
    )


def cal_030():
    return float(
        mpmath.quad(
            lambda x: mpmath.atan(3 * x / (1 + 4 * x * x)) / (x * (1 + x * x)),
            [0, 0.3, 1, 5, mpmath.inf],
        )
    )


def cal_032():
    total, sums = 0, {}
    for k in range(1, 160001):
        total += math.isqrt(2 * k * k) * math.isqrt(3 * k * k)
        if k in (80000, 160000):
            sums[k] = total / k**3
    return 2 * sums[160000] - sums[80000]


def _triangles(m):
    """Areas of the triangles ABV in the regular polygon with 2m vertices, by the shoelace formula."""
    corners = [(6 * math.cos(math.pi * k / m), 6 * math.sin(math.pi * k / m)) for k in range(2 * m)]
    (ax, ay), (bx, by) = corners[0], corners[m]
    others = corners[1:m] + corners[m + 1 :]
    return [abs((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / 2 for x, y in others]


def cal_033():
    return _limit(lambda m: math.fsum(_triangles(m)) / (2 * m - 2), 250)


def cal_034():
    def block(p, u):  # the sum over e^u <= n < e^(2u), where n = e^s stands for about e^s terms
        def density(s):
            return mpmath.exp(s - (1 + s**-p) * s)

        return u / 30 * sum(density(u * (1 + (i + mpmath.mpf(0.5)) / 30)) for i in range(30))

    with mpmath.workdps(60):
        far, farther = mpmath.mpf(10) ** 20, mpmath.mpf(10) ** 25
        for p in ("0.1", "0.5", "0.8", "0.9"):
            assert block(mpmath.mpf(p), farther) < block(mpmath.mpf(p), far) < 1e-20
        for p in ("1", "1.1", "1.5", "2", "10"):
            assert block(mpmath.mpf(p), farther) > block(mpmath.mpf(p), far) > 1e18
    return "$0<p<1$"


def cal_035():
    return float(sum(30 / n * (5 / 6) ** (n - 1) / 6 for n in range(1, 400)))


def cal_036():
    def near(y, z):
        if y == 0 or (64 - z**3) / y < 0:
            return -math.inf
        return -math.sqrt((64 - z**3) / (4 * y) + y * y + z * z)

    return min(4.0, -_maximum(near, (-4.1, 4.1), (-4.1, 4.1), grid=60))  # y = 0 means z = 4


def cal_037():
    return float(
        mpmath.quad(
            lambda t: t * (10 - t) * mpmath.sqrt(t) / (mpmath.sqrt(t) + mpmath.sqrt(10 - t)),
            [0, 5, 10],
        )
    )


def cal_040():
    return _largest_with_bounded_derivative(
        order=4,
        ends=(-2, 2),
        conditions=[lambda f: f(-2), lambda f: f(0), lambda f: f(2), lambda f: f(0, 1)],
        target=lambda f: f(1),
        bound=24,
    )


def cal_041():
    rows = []
    for m in (4000, 8000, 16000):  # value + a ln(m) / m + b / m
        log_mean = math.fsum(map(math.log, _triangles(m))) / (2 * m - 2)
        rows.append((m, log_mean))
    matrix = mpmath.matrix([[1, math.log(m) / m, 1 / m] for m, _ in rows])
    return float(mpmath.exp(mpmath.lu_solve(matrix, mpmath.matrix([v for _, v in rows]))[0]))


def cal_042():
    return float(sum(30 / 2**n * (5 / 6) ** (n - 1) / 6 for n in range(1, 200)))


def cal_043():
    def radius(theta, phi):
        x, y, z = math.sin(theta) * math.cos(phi), math.sin(theta) * math.sin(phi), math.cos(theta)
        form = 29 * x * x + 26 * y * y + 17 * z * z - 28 * x * y - 20 * y * z + 8 * x * z
        return math.sqrt(90 / form)

    half_sphere = ((0.0, math.pi), (0.0, math.pi))
    least = -_maximum(lambda *angles: -radius(*angles), *half_sphere)
    return (least, _maximum(radius, *half_sphere))


def cal_044():
    def converges(a):
        for _ in range(3000):
            a = (a**3 + 6) / 7
            if abs(a) > 10:
                return False
        return abs(a - (a**3 + 6) / 7) < 1e-9

    for i in range(-60, 61):
        start = i / 10  # from -3 and 2, which repel, the terms are computed without rounding
        assert converges(start) == (-3 <= start <= 2)
    assert not any(map(converges, (2 + 1e-9, -3 - 1e-9)))
    assert all(map(converges, (2 - 1e-9, -3 + 1e-9)))
    return r"$-3 \le a_1 \le 2$"


def cal_045():
    a = 2.0
    for _ in range(200):
        a = (8 - a**3) / 7
    return a


def cal_048():
    x, s = sp.symbols("x s")
    candidate = 1 - 2 * x + 3 * sp.cos(2 * x - 1) + 3 * sp.sin(2 * x - 1)
    coefficients = [sp.Integer(3)]  # of the power series about 1/2: f'(s) = 2 f(-s) - 4 s - 2
    for k in range(20):
        right = 2 * (-1) ** k * coefficients[-1] - {0: 2, 1: 4}.get(k, 0)
        coefficients.append(right / (k + 1))
    series = sp.series(candidate.subs(x, sp.Rational(1, 2) + s), s, 0, 20).removeO()
    assert all(series.coeff(s, k) == coefficients[k] for k in range(20))
    right = 2 * candidate.subs(x, 1 - x) - 4 * x
    assert sp.simplify(sp.diff(candidate, x) - right) == 0
    return candidate


def cal_049():
    x, here, there = sp.symbols("x here there")
    pair = sp.solve([here - x * there - 1, there - (1 - x) * here - 1], [here, there], dict=True)[0]
    assert sp.simplify(pair[here].subs(x, 1 - x) - pair[there]) == 0
    return sp.simplify(pair[here])


def cal_050():
    def amount(last):
        b = 0.0
        for n in range(last - 60, last + 1):  # older doses have faded by the factor 3**-60
            b = b / 3 + (2 * n + math.sin(n)) / (n + 1)
        return b

    return amount(10**8)


def cal_051():
    n = sp.symbols("n")
    formula = 3 + 3 * 2 ** (-n) - 6 * 3 ** (-n)
    b = sp.Integer(0)
    for day in range(1, 30):
        b = b / 3 + 2 + sp.Rational(1, 2**day)
        assert formula.subs(n, day) == b
    return formula


def cal_053():
    with mpmath.workdps(80):
        n = mpmath.mpf(10) ** 9
        one, two, three = (mpmath.atan(mpmath.sqrt(n + k)) for k in range(3))
        return float(n**2.5 * (three - 2 * two + one))


def cal_054():
    def partial(n):  # the terms behave like a multiple of k^(-5/2)
        t = [mpmath.atan(mpmath.sqrt(k)) for k in range(1, n + 3)]
        return mpmath.fsum(t[k + 2] - 2 * t[k + 1] + t[k] for k in range(n))

    with mpmath.workdps(30):
        sums = [partial(n) for n in (2000, 4000)]
        ratio = mpmath.mpf(2) ** 1.5
        return float((ratio * sums[1] - sums[0]) / (ratio - 1))


def cal_055():
    def log_product(n):
        fifth = mpmath.mpf(1) / 5
        top = mpmath.loggamma(n + 2 * fifth) - mpmath.loggamma(2 * fifth)
        return top - mpmath.loggamma(n + 3 * fifth) + mpmath.loggamma(3 * fifth)

    for small in (1, 40):
        direct = math.prod((5 * k - 3) / (5 * k - 2) for k in range(1, small + 1))
        assert abs(mpmath.exp(log_product(small)) - direct) < 1e-12
    with mpmath.workdps(400):
        n = mpmath.mpf(10) ** 300
        return float(mpmath.exp(mpmath.log(n) / 6 + log_product(n)))


def cal_056():
    def product(n):
        return math.prod(
            (5 * k - 3) * (5 * k + 3) / ((5 * k - 2) * (5 * k + 2)) for k in range(1, n + 1)
        )

    return _limit(product, 1000)


def cal_057():
    return float(mpmath.quad(lambda x: x / (mpmath.exp(2 * x) + mpmath.exp(x)), [0, 1, 5, 60]))


def cal_058():
    return float(
        mpmath.quad(
            lambda x: mpmath.sqrt(mpmath.expm1(x)) / (mpmath.exp(2 * x) + mpmath.exp(x)),
            [0, 0.1, 1, 5, 60],
        )
    )


def cal_059():
    rows = []
    for step in (8e-4, 4e-4, 2e-4):  # value + a d ln d + b d + c d^2 ln d, with d = 1 - x
        x, power, total = 1 - step, 1.0, 0.0
        for n in range(1, int(45 / step)):
            power *= x
            total += n * power * math.atan(n)
        rows.append((step, step**2 * total))
    matrix = mpmath.matrix([[1, d, d * d * math.log(d)] for d, _ in rows])
    return float(mpmath.lu_solve(matrix, mpmath.matrix([v for _, v in rows]))[0])


def cal_060():
    def value(n):  # x = 1 - 1/n
        x = 1 - 1 / n
        return sum(x**k / (1 + x**k + x ** (2 * k)) for k in range(1, 40 * n)) / n

    return _limit(value, 50, 5)


def cal_061():
    return float(
        mpmath.quad(
            lambda x: (x * x + 1) * mpmath.atan(x - 1 / x) ** 2 / (x**4 - x * x + 1),
            [0, 0.2, 1, 5, 50, mpmath.inf],
        )
    )


def cal_062():
    return float(
        mpmath.quad(
            lambda x: (x * x + 1) * mpmath.log(2 * x) / (x + 1) ** 4,
            [0, 0.001, 0.1, 1, 10, 1000, mpmath.inf],
        )
    )


def cal_065():
    return _maximum(lambda x: math.cos(x) ** 3 * math.sin(3 * x), (-math.pi, math.pi))


def cal_066():
    return _maximum(lambda x: math.sin(x) ** 3 * math.sin(3 * x), (-math.pi, math.pi))


def cal_068():
    return sum(n & n >> 1 == 0 == n & n >> 2 for n in range(1, 2**20))


def cal_069():
    return -_maximum(
        lambda x: -math.hypot(27**0.5, x) - math.hypot(4, 7 - x) / math.sqrt(2), (-5.0, 12.0)
    )


def cal_070():
    def uncertainty(r):  # the two conditions leave one free number
        q = 10 / 7 - 2 * r
        shares = (1 - q - r, q, r)
        return -math.fsum(s * math.log(s) for s in shares if s > 0)

    return _maximum(uncertainty, (3 / 7, 5 / 7))


def cal_071():
    return float(
        mpmath.quad(
            lambda x: mpmath.exp(-x) * (2 * mpmath.sin(x / 2) ** 2 / x) ** 2,
            mpmath.linspace(0, 50, 26),
        )
    )


def cal_072():
    return float(
        mpmath.quad(
            lambda x: ((mpmath.exp(-x * x) - mpmath.exp(-9 * x * x)) / x) ** 2,
            [0, 0.2, 0.5, 1, 3, 9],
        )
    )


def cal_073():
    x, here, there = sp.symbols("x here there", positive=True)
    pair = sp.solve(
        [3 * here + 5 / x**2 * there - x - 2, 3 * there + 5 * x**2 * here - 1 / x - 2],
        [here, there],
    )
    return sp.integrate(sp.expand(pair[here]), (x, sp.Rational(1, 3), 3))


def cal_074():
    return float(
        mpmath.quad(
            lambda x: x * x * mpmath.sqrt(4 - x * x) * mpmath.acos(x**3 / 8), [-2, -1, 0, 1, 2]
        )
    )


def cal_075():
    x, y = sp.symbols("x y", positive=True)
    roof = 10 * (1 - sp.sqrt(x / 2) - sp.cbrt(y / 3))
    inner = sp.integrate(sp.expand(roof), y)
    edge = 3 * (1 - sp.sqrt(x / 2)) ** 3
    slice_area = sp.lambdify(x, inner.subs(y, edge) - sp.limit(inner, y, 0), "mpmath")
    return float(mpmath.quad(slice_area, [0, 0.5, 2]))


def cal_076():
    # Along a line in the direction of the angle t the integral of r^3 exp(-r^2 Q) is 1 / (2 Q^2).
    def along(t):
        x, y = mpmath.cos(t), mpmath.sin(t)
        return (x - y) ** 2 / (2 * (2 * x * x - 2 * x * y + y * y) ** 2)

    return float(mpmath.quad(along, mpmath.linspace(0, 2 * mpmath.pi, 9)))


def cal_077():
    steps, area, height = 4000, 0.0, 3.0

    def slope(x, covered):  # the rate at which the area grows is the height f
        return (3 + 2.5 * covered) / x

    size = 3 / steps
    for i in range(steps):
        x = 1 + i * size
        k1 = slope(x, area)
        k2 = slope(x + size / 2, area + size * k1 / 2)
        k3 = slope(x + size / 2, area + size * k2 / 2)
        k4 = slope(x + size, area + size * k3)
        area += size * (k1 + 2 * k2 + 2 * k3 + k4) / 6
        height = slope(x + size, area)
    return height


def cal_078():
    def first(t):
        mixing = sp.Matrix([[-1, 1], [1, -1]]) * t / 20
        term, total = sp.Matrix([80, 0]), sp.Matrix([80, 0])
        for k in range(1, 40):
            term = (mixing * term / k).evalf()
            total += term
        return float(total[0])

    return float(mpmath.findroot(lambda t: first(t) - 50, (10, 20), solver="anderson", tol=1e-9))


def cal_079():
    def value(n):
        return n * _maximum(lambda x: x**n * math.sin(math.pi * (1 - x)), (1 - 4 / n, 1.0))

    return _limit(value, 200)


def cal_080():
    b, product = 0.5, 1.0
    for _ in range(200):
        product *= (3 - b) / 2
        b = b * (3 - b) / 2
    return product


def cal_081():
    a, inverse = 1.0, {}
    for n in range(2, 80001):
        a = math.atan(a) * math.cos(a)
        if n in (20000, 40000, 80000):
            inverse[n] = 1 / a**2
    rates = [(inverse[2 * n] - inverse[n]) / n for n in (20000, 40000)]
    return 1 / math.sqrt(2 * rates[1] - rates[0])


def cal_082():
    def log_term(n, x):
        return (
            mpmath.loggamma(n + 1)
            + n * mpmath.log(n)
            - mpmath.loggamma(2 * n + 1)
            + n * mpmath.log(x)
        )

    with mpmath.workdps(40):
        n = mpmath.mpf(10) ** 9
        radius = mpmath.exp(-log_term(n, 1) / n)
        ends = [mpmath.exp(log_term(k, 4 / mpmath.e)) for k in (10**3, 10**5)]
        assert all(0.6 < end < 0.8 for end in ends)  # the terms at R do not tend to 0
        return float(radius)


def cal_083():
    def value(x):
        a, b = (1, 0), (mpmath.cos(x), mpmath.sin(x))  # the ends; tangents p . a = 1 and p . b = 1
        tip = mpmath.lu_solve(mpmath.matrix([a, b]), mpmath.matrix([1, 1]))
        triangle = abs((b[0] - 1) * tip[1] - (tip[0] - 1) * b[1]) / 2
        half = x / 2  # the arc above its chord, at the distance s from the axis of symmetry
        segment = 2 * mpmath.quad(
            lambda s: mpmath.sqrt(1 - s * s) - mpmath.cos(half), [0, mpmath.sin(half)]
        )
        return (segment / triangle - mpmath.mpf(2) / 3) / x**2

    with mpmath.workdps(40):
        return float(value(mpmath.mpf(10) ** -5))


def cal_084():
    # Below x = -10 the polynomial is larger, beyond x = 10 the power.
    values = [3.0**x - x * x - x - 1 for x in (-10 + (i + 0.3) / 997 for i in range(19940))]
    return sum(a * b < 0 for a, b in itertools.pairwise(values))


def cal_086():
    with mpmath.workdps(40):
        n, x = mpmath.mpf(10) ** 12, mpmath.mpf(1)
        for _ in range(30):
            x = mpmath.exp(mpmath.log(5 * x + n) / n)
        return float(n * (x - 1) / mpmath.log(n))


def cal_087():
    def moment(f):  # Simpson's rule in exact fractions, on the same cells
        size = Fraction(1, 200)
        ordinates = [i * size * f(i * size) for i in range(401)]
        return (
            size / 3 * sum(w * v for w, v in zip([1, *[4, 2] * 199, 4, 1], ordinates, strict=True))
        )

    return _largest_with_bounded_derivative(
        order=2,
        ends=(0, 2),
        conditions=[lambda f: f(0), lambda f: f(2)],
        target=moment,
        bound=3,
        cells=100,
    )


def cal_088():
    def value(n):
        integral = mpmath.quad(
            lambda x: x**n * mpmath.sqrt(x**3 + 8),
            [0, 1 - mpmath.mpf(20) / n, 1 - mpmath.mpf(3) / n, 1],
        )
        return n * (n * integral - 3)

    with mpmath.workdps(25):
        return _limit(value, 200)


def cal_089():
    def value(n):
        return mpmath.quad(
            lambda x: (1 - x / n) ** (2 * n) * (1 + x / n) ** n * mpmath.cos(x),
            mpmath.linspace(0, min(n, 60), 31),
        )

    return _limit(value, 200)


def cal_090():
    def signal(x):
        return math.fsum(math.sin(n * x) / 2**n for n in range(1, 55))

    size = math.pi / 400  # Simpson's rule
    weights = [1, *[4, 2] * 199, 4, 1]
    return size / 3 * math.fsum(w * i * size * signal(i * size) for i, w in enumerate(weights))


def cal_091():
    return float(sum(Fraction(math.comb(2 * n, n) * n, (2 * n + 1) * 8**n) for n in range(1, 70)))


def cal_092():
    return float(
        mpmath.quad(
            lambda x: mpmath.log(x) * mpmath.log(1 - mpmath.sqrt(x)), [0, 0.01, 0.5, 0.99, 1]
        )
    )
