"""Programs for the final answers of the geometry part: points are mostly complex numbers."""

import cmath
import itertools
import math
import random
from fractions import Fraction

import sympy as sp


def _cross(u, v):
    return (u.conjugate() * v).imag


def _dot(u, v):
    return (u.conjugate() * v).real


def _triangle(a, b, c):
    """A, B, C with BC = a on the real axis from 0, CA = b, AB = c."""
    x = (a * a + c * c - b * b) / (2 * a)
    return complex(x, math.sqrt(c * c - x * x)), 0j, complex(a)


def _meet(p, q, r, s):
    """Common point of the lines pq and rs."""
    return p + (q - p) * _cross(r - p, s - r) / _cross(q - p, s - r)


def _foot(p, a, b):
    return a + (b - a) * _dot(b - a, p - a) / abs(b - a) ** 2


def _circle(a, b, c):
    """Centre and radius of the circle through three points."""
    m, n = (a + b) / 2, (a + c) / 2
    centre = _meet(m, m + 1j * (b - a), n, n + 1j * (c - a))
    return centre, abs(centre - a)


def _again(centre, p, direction):
    """Second point of the line through p on the circle about centre through p."""
    return p - 2 * direction * _dot(direction, p - centre) / abs(direction) ** 2


def _angle(a, o, b):
    return abs(cmath.phase((a - o) / (b - o)))


def _area(*points):
    """Area of a polygon, signed."""
    return sum(_cross(p, q) for p, q in zip(points, points[1:] + points[:1], strict=True)) / 2


def _convex(*points):
    turns = [
        _cross(points[k - 1] - points[k - 2], points[k] - points[k - 1]) for k in range(len(points))
    ]
    return min(turns) > 0 or max(turns) < 0


def _length(points):
    """Length of a closed polygon."""
    return sum(abs(p - q) for p, q in zip(points, points[1:] + points[:1], strict=True))


def _root(f, low, high):
    """Zero of f between two places of different sign, by bisection."""
    sign = f(low) > 0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (f(middle) > 0) == sign else (low, middle)
    return (low + high) / 2


def _roots(f, low, high, steps=1000):
    """Zeros of f where it changes its sign on a grid."""
    grid = [low + (high - low) * (k + 0.123) / steps for k in range(-1, steps + 1)]
    return [_root(f, x, y) for x, y in itertools.pairwise(grid) if (f(x) > 0) != (f(y) > 0)]


def _least(f, low, high, steps=200):
    """Place of the least value of f: the best of a grid, then ternary search."""
    width = (high - low) / steps
    best = min((low + width * k for k in range(steps + 1)), key=f)
    low, high = max(low, best - width), min(high, best + width)
    for _ in range(50):
        third = (high - low) / 3
        low, high = (low, high - third) if f(low + third) < f(high - third) else (low + third, high)
    return (low + high) / 2


def _through_p(t):
    """P at the origin, line direction t: the second points on the circles about O1 and O2."""
    first, second = -5 - 12j, 9 - 12j  # P = 12j on the common chord, moved to the origin
    u = cmath.exp(1j * t)
    return _again(first, 0j, u), _again(second, 0j, u)


def _dot3(u, v):
    return sum(x * y for x, y in zip(u, v, strict=True))


def geo_001():
    a, b, c = _triangle(9, 10, 11)
    incentre = (9 * a + 10 * b + 11 * c) / 30
    middle = (b + incentre) / 2  # the centre is equally far from B and I, and at I above AI
    centre = _meet(incentre, incentre + 1j * (a - incentre), middle, middle + 1j * (b - incentre))
    return abs(_again(centre, b, c - b) - c)


def geo_002():
    lengths = set()
    for turn in (1j, -1j):
        for x in _roots(lambda x, turn=turn: abs(turn * (x - 6j) - (9 + 4j)) - 5, -50, 50):
            lengths.add(abs(x - 6j))
    return lengths


def geo_003():
    # geodesic r(t) for the metric dr^2 + (r/6)^2 dt^2, from the middle (slope 0) to the rim
    def radii(r):
        step, slope, found = math.pi / 100, 0.0, [r]

        def force(r, slope):
            return 2 * slope * slope / r + r / 36

        for _ in range(200):
            k1, l1 = slope, force(r, slope)
            k2, l2 = slope + step * l1 / 2, force(r + step * k1 / 2, slope + step * l1 / 2)
            k3, l3 = slope + step * l2 / 2, force(r + step * k2 / 2, slope + step * l2 / 2)
            k4, l4 = slope + step * l3, force(r + step * k3, slope + step * l3)
            r += step * (k1 + 2 * k2 + 2 * k3 + k4) / 6
            slope += step * (l1 + 2 * l2 + 2 * l3 + l4) / 6
            found.append(r)
        return found

    middle = _root(lambda r: radii(r)[-1] - 6, 1, 5)
    return radii(middle)[100]  # half a turn either way from the middle: the same generator


def geo_004():
    a, b, c = _triangle(5, 6, 4)

    def cost(t):
        p = a + 5 * cmath.exp(1j * t)
        return 3 * abs(p - b) + 2 * abs(p - c)

    return cost(_least(cost, 0, 2 * math.pi))


def geo_005():
    a, b, c = 1 + 5j, 0j, 7 + 0j

    def gates(u, v):
        p = b + u * (c - b) + v * (a - b)
        return p, _meet(a, p, b, c), _meet(b, p, c, a), _meet(c, p, a, b)

    def parts(u, v):
        p, d, e, _ = gates(u, v)
        return abs(p - d) / abs(a - d), abs(p - e) / abs(b - e)

    def level(u):
        return _root(lambda v: parts(u, v)[0] - 1 / 6, 1e-6, 1 - u - 1e-6)

    u = _root(lambda u: parts(u, level(u))[1] - 1 / 3, 0.01, 0.8)
    return 45 * abs(_area(*gates(u, level(u))[1:]) / _area(a, b, c))


def geo_006():
    # the centre (p, q) is left of the line, as the circle passes through O; r = 2 - p = |(p, q)|
    q = sp.symbols("q", real=True)
    p = 1 - q**2 / 4
    radii = set()
    for sign in (1, -1):
        touching = sp.expand((p + 1) ** 2 + (q - 2) ** 2 - (2 - p + sign) ** 2)
        radii |= {sp.expand(2 - p.subs(q, root)) for root in sp.real_roots(touching)}
    return radii


def geo_007():
    flags = [0j, 1 + 0j]
    for _ in range(150):
        p, q = flags[-2:]
        corner = q + 1j * (q - p)
        flags.append((p + corner) / 2)
    return flags[-1].real, flags[-1].imag


def geo_008():
    normals = [cmath.exp(2j * math.pi * k / 9) for k in range(9)]

    def product(t):
        p = 2 * cmath.exp(1j * t)
        return math.prod(abs(_dot(p, n) - 1) for n in normals)

    return product(_least(lambda t: -product(t), 0, 2 * math.pi, 900))


def geo_009():
    c, b, d = 0j, complex(3 * math.sqrt(2)), 4 * cmath.exp(0.25j * math.pi)
    found = [(b + d) / 2 + turn * (d - b) / 2 for turn in (1j, -1j)]
    (a,) = [a for a in found if _convex(a, b, c, d)]
    return abs(a - c)


def geo_010():
    z = 0j
    for _ in range(100):
        z = 7 + 4j + z * 1j / 2
    return z.real, z.imag


def geo_011():
    def diagonal(height):
        corner = [
            (9 - height) / 9 * 6,
            (9 - height) / 9 * 4,
        ]  # on the edge from (0, 0, 9) to (6, 4, 0)
        return math.hypot(2 * corner[0], 2 * corner[1], height)

    return diagonal(_least(diagonal, 0, 9))


def geo_012():
    p, q = cmath.rect(8, math.radians(10)), cmath.rect(5, math.radians(30))
    wall = cmath.rect(1, math.radians(40))

    def best(x):
        y = _least(lambda y: abs(x - y * wall) + abs(y * wall - q), 0, 20, 20)
        return abs(p - x) + abs(x - y * wall) + abs(y * wall - q)

    return best(_least(best, 0, 20, 20))


def geo_013():
    a, b, c, d = (sp.Matrix(v) for v in ([0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]))
    k, m1, m2 = (2 * a + b) / 3, (b + 3 * c) / 4, (5 * c + 2 * d) / 7
    normal = (m1 - k).cross(m2 - k)
    s, t = sp.symbols("s t")
    n = d + sp.solve(normal.dot(d + s * (a - d) - k), s)[0] * (a - d)
    place = sp.solve(list(k + s * (m1 - k) - m2 - t * (n - m2)), [s, t])  # X on KL and MN
    return sp.Abs(place[t] / (place[t] - 1))


def geo_015():
    def far(t):
        return abs(_cross(cmath.exp(1j * t), -24j)) - 21  # Q is 24 below P

    lines = [_through_p(t) for t in _roots(far, 0, math.pi)]
    (length,) = [abs(a - b) for a, b in lines if _dot(a, b) < 0]
    return length


def geo_016():
    def product(t, s):
        a, b, c = math.cos(t) * math.cos(s), 2 * math.sin(t) * math.cos(s), 3 * math.sin(s)
        return (1 / a) ** 2 * (4 / b) * (9 / c)

    def best(s):
        return product(_least(lambda t: product(t, s), 0.1, 1.4, 15), s)

    return best(_least(best, 0.1, 1.4, 15))


def geo_017():
    def product(x, side):
        b = _triangle(x, 4, 5)[0]  # foot points at 0 (A) and x (C): AB = 5, BC = 4
        d = _triangle(x, 7, 6)[0]
        return x * abs(b - (d if side else d.conjugate()))

    best = []
    for side in (True, False):
        x = _least(lambda x, side=side: -product(x, side), 1.0001, 8.9999)
        best.append(product(x, side))
    return max(best)


def geo_018():
    corners = [12 * cmath.exp(2j * math.pi * k / 3) / math.sqrt(3) for k in range(3)]
    assert math.isclose(abs(corners[0] - corners[1]), 12)

    def top(r):
        """Highest point of a ball of radius r that rests on the three."""
        height = _root(lambda z: math.hypot(abs(corners[0]), z - 6) - (6 + r), 6, 100)
        return height + r

    return _root(lambda r: top(r) - 24, 1, 20)


def geo_019():
    b, c, d, a = 0j, 12 + 0j, 12 + 10j, 10j
    target = (c + d) / 2
    middle, direction = target / 2, 1j * target
    ends = []
    for p, q in ((b, c), (c, d), (d, a), (a, b)):
        end = _meet(middle, middle + direction, p, q)
        if abs(abs(end - p) + abs(end - q) - abs(p - q)) < 1e-9:
            ends.append(end)
    return abs(ends[0] - ends[1])


def geo_020():
    points = []
    for k in range(5000):
        x = 5 * cmath.exp(2j * math.pi * (k + 0.3) / 5000)
        points.append(_meet(0j, 1 + x / 5, 13 + 0j, x))
    return _length(points)


def geo_021():
    _, r = _circle(*_triangle(6, 4, 4))
    step = 2 * math.asin(2 / r)
    b, e = r * cmath.exp(1j * step), r * cmath.exp(1j * (3 * step + 2 * math.pi) / 2)
    return abs(b - e)


def geo_022():
    a, b, c, d = 10 + 20j, 0j, 24 + 0j, 10 + 0j
    e, f = _foot(d, a, b), _foot(d, a, c)
    centre, r = _circle(b, c, e)
    assert math.isclose(abs(f - centre), r)
    return r


def geo_023():
    found = []
    for t in (0.2, 0.9, 1.5):
        c = 5 * cmath.exp(1j * (math.pi - t))
        d = 5 * cmath.exp(1j * (math.pi - t - 2 * math.asin(0.6)))
        found.append(abs(_meet(-5, c, 5, d) - _meet(-5, d, 5, c)))
    assert max(found) - min(found) < 1e-9
    return found[0]


def geo_024():
    found = set()
    for h in range(1, 100):
        x, y, z = sorted(Fraction(1, k) for k in (6, 10, h))
        if x + y > z and x * x + y * y > z * z:
            found.add(h)
    return found


def geo_025():
    # in the shadow: the line from (1, 0, 12) to (x, y, 0) comes within 4 of (0, 0, 4)
    x, y = sp.symbols("x y")
    lamp, floor, ball = sp.Matrix([1, 0, 12]), sp.Matrix([x, y, 0]), sp.Matrix([0, 0, 4])
    way = floor - lamp
    inside = 16 * way.dot(way) - (ball - lamp).cross(way).dot((ball - lamp).cross(way))
    width = sp.solve(inside, y)  # the two ends of the section at x
    half = sp.simplify(width[1] ** 2)
    low, high = sorted(sp.solve(half, x))
    a, c = (high - low) / 2, (high + low) / 2
    return sp.pi * a * sp.sqrt(half.subs(x, c))  # half is quadratic in x: an ellipse


def geo_026():
    def crossings(angle, count):
        shores, p, found = (1, cmath.exp(1j * angle)), 1 + 0j, []
        for k in range(count):
            q = _foot(p, 0j, shores[(k + 1) % 2])
            found.append(abs(q - p))
            p = q
        return found

    def ratio(angle):
        first, second = crossings(angle, 2)
        return second / first - 12 / 15

    found = crossings(_root(ratio, 0.1, 1.5), 400)
    return 15 * sum(found) / found[0]


def geo_027():
    a, b, c = _triangle(8, 9, 7)

    def total(x):
        return _circle(a, b, x)[1] + _circle(a, c, x)[1]

    return total(_least(total, 0.01, 7.99))


def geo_028():
    def figure(base):
        a, b, c = _triangle(base, 12, 9)
        m = (b + c) / 2
        centre = _meet(m, m + 1j, (a + m) / 2, (a + m) / 2 + 1j * (a - m))
        return abs(_again(centre, a, b - a) - b) - 4, abs(_again(centre, a, c - a) - c)

    return figure(_root(lambda base: figure(base)[0], 4, 20))[1]


def geo_029():
    a, b, c = 0j, 10 + 0j, 5 + 12j
    found = []
    for start in (0j, 3 - 4j, 17.5 + 2j):
        z = start
        for mast, turn in ((a, 1j), (b, 1j), (c, -1)):
            z = mast + turn * (z - mast)
        found.append(abs(z - start))
    assert max(found) - min(found) < 1e-9
    return found[0]


def geo_030():
    # equal thirds of a lap between the first two runners make 12 t an integer
    lap, count = 2520, 0
    for j in range(1, lap):
        p, q, r = sorted(n * j % lap for n in (1, 5, 15))
        count += q - p == r - q == lap // 3
    return count


def geo_031():
    def circle(t):
        return _circle(0j, complex(2 * t), 1j * (10 - t))

    centres = [circle(t)[0] for t in (1.0, 2.5, 6.0, 9.0)]
    common = 2 * _foot(0j, centres[0], centres[1])  # O mirrored in the line of the centres
    assert all(math.isclose(abs(common - c), abs(c)) for c in centres)
    return abs(common)


def geo_032():
    a, b, c = _triangle(10, 8, 4)
    centre, _ = _circle(a, b, (a + b + c) / 3)
    return abs(_again(centre, b, c - b) - c)


def geo_033():
    def gap(x):
        return abs(-(x - 6j) * 4 / 3 - (9 + 4j)) - 5

    return {abs(x - 6j) for x in _roots(gap, -50, 50)}


def geo_034():
    # tip (0, 0, 4), A = (-3, 0, 0); the plane 3(x + 3) = 4z is perpendicular to (3, 0, -4)
    x = sp.symbols("x")
    z = sp.Rational(3, 4) * (x + 3)
    square = sp.expand(sp.Rational(9, 16) * (4 - z) ** 2 - x**2)
    (place,) = sp.solve(sp.diff(square, x), x)
    return 2 * sp.sqrt(square.subs(x, place))


def geo_035():
    a, b, c = _triangle(5, 6, 4)

    def cost(t):
        p = a + 5 * cmath.exp(1j * t)
        return 3 * abs(p - b) ** 2 + 2 * abs(p - c) ** 2

    return cost(_least(cost, 0, 2 * math.pi))


def geo_036():
    a, b, c, d = 150 + 600j, 0j, 700 + 0j, 300 + 0j
    e = a + (c - a) / 3
    p = _meet(a, d, b, e)
    return abs(_meet(e, _meet(c, p, a, b), b, c) - c)


def geo_037():
    p, q = sp.symbols("p q", real=True)
    equations = [p**2 + q**2 - (2 - p) ** 2, p**2 + q**2 - (p - 1) ** 2 - (q - 1) ** 2]
    return {2 - x for x, _ in sp.solve(equations, [p, q])}


def geo_038():
    flags = [0j, 6 + 0j, 12j]
    for _ in range(150):
        flags.append(sum(flags[-3:]) / 3)
    return flags[-1].real, flags[-1].imag


def geo_039():
    normals = [cmath.exp(2j * math.pi * k / 9) for k in range(9)]
    sums = [
        sum((_dot(3 * cmath.exp(1j * t), n) - 1) ** 2 for n in normals)
        for t in (0.0, 0.4, 1.1, 3.3)
    ]
    assert max(sums) - min(sums) < 1e-9
    return sums[0]


def geo_040():
    a, b, d = 3j, -4 + 0j, 4 + 0j
    centre, r = _circle(a, b, d)

    def far(t):
        return centre + r * cmath.exp(1j * t)

    found = set()
    for t in _roots(lambda t: abs(far(t) - a) - 7.5, -math.pi, math.pi):
        c = far(t)
        assert _convex(a, b, c, d)
        found.add(round(_length([a, b, c, d]), 9))
    (found,) = found
    return found


def geo_041():
    z = 0j
    for _ in range(150):
        z = 9 + 8j - z * 2 / 3
    return z.real, z.imag


def geo_042():
    def volume(height):
        half = [(9 - height) / 9 * 6, (9 - height) / 9 * 4]
        return 4 * half[0] * half[1] * height

    return volume(_least(lambda height: -volume(height), 0, 9))


def geo_043():
    wall = cmath.exp(1j * math.pi / 3)
    p = _meet(1.5j, 1.5j + 1, -6j * wall, -6j * wall + wall)  # 3/2 above one wall, 6 from the other

    def gap(r):
        return abs(2 * r * cmath.exp(1j * math.pi / 6) - p) - r

    return set(_roots(gap, 0.1, 50))


def geo_044():
    b, c, d = (sp.Matrix(v) for v in ([1, 0, 0], [0, 1, 0], [0, 0, 1]))
    k, m1, m2, g = b / 2, 2 * c / 3, 3 * d / 4, (b + c + d) / 3
    s = sp.symbols("s")
    (s,) = sp.solve((m1 - k).cross(m2 - k).dot(s * g - k), s)
    return s / (1 - s)


def geo_046():
    def gap(t):
        a, b = _through_p(t)
        return abs(a + b) if _dot(a, b) < 0 else 100.0

    a, b = _through_p(_least(gap, 0.1, 3.2, 500))
    assert abs(a + b) < 1e-6
    return abs(a - b)


def geo_047():
    def squares(t, s):
        a, b, c = math.cos(t) * math.cos(s), 2 * math.sin(t) * math.cos(s), 3 * math.sin(s)
        return (1 / a) ** 2 + (4 / b) ** 2 + (9 / c) ** 2

    def best(s):
        return squares(_least(lambda t: squares(t, s), 0.1, 1.4, 15), s)

    return best(_least(best, 0.1, 1.4, 15))


def geo_048():
    def frame(y):
        """The frame with BD = y, B at y and D at 0, and A, C on different sides."""
        a, _, _ = _triangle(y, 5, 6)
        c, _, _ = _triangle(y, 4, 7)
        return a, complex(y), c.conjugate(), 0j

    def angle(y):
        a, b, c, d = frame(y)
        slope = abs(cmath.phase((c - a) / (d - b)))
        return min(slope, math.pi - slope) - math.pi / 3

    found = {
        round(abs(_area(*frame(y))), 9) for y in _roots(angle, 3.01, 10.99) if _convex(*frame(y))
    }
    (area,) = found
    return area


def geo_049():
    b, points = -6j, []
    for k in range(5000):
        x = 13 + 5 * cmath.exp(2j * math.pi * k / 5000)
        at_a, at_y = _angle(b, 0j, x), _angle(0j, b, x)
        points.append(x / abs(x) * 6 * math.sin(at_a + at_y) / math.sin(at_y))
    return _length(points)


def geo_050():
    a, b, c, d = 1 + 3j, 0j, 5 + 0j, 1 + 0j
    return abs(_area(a, _foot(d, a, b), _foot(d, a, c)))


def geo_051():
    c = 5 * cmath.exp(2j * math.acos(0.8))
    assert math.isclose(abs(c + 5), 8)

    def gap(t):
        d = 5 * cmath.exp(1j * t)
        p = _meet(-5, c, 5, d)
        return abs(abs(p - 5) / abs(p - d) - 3)

    t = _least(gap, cmath.phase(c) + 0.01, math.pi - 0.01, 500)
    assert gap(t) < 1e-9
    return abs(5 * cmath.exp(1j * t) + 5)


def geo_052():
    count = 0
    for m in range(1, 100):
        squares = [Fraction(k * k) for k in (6, 10, m)]
        sides = [4 * (2 * sum(squares) - 3 * s) / 9 for s in squares]  # squares of the sides
        x, y, z = sides
        # sixteen times the square of the area, positive for a proper triangle
        count += min(sides) > 0 and 2 * (x * y + y * z + z * x) - x * x - y * y - z * z > 0
    return count


def geo_053():
    # the lamp (s, 0, 12) is hidden at (x, y) if 2/3 of the way from it lies in the disc about (1, 2)
    def dark(x, s):
        return math.sqrt(max(0.0, 4 - (s + (x - s) * 2 / 3 - 1) ** 2)) * 3 / 2

    def half(x):
        return min(dark(x, -3), dark(x, 3))  # both shadows are symmetric to y = 3

    low = max((3 * (1 - 2) - s) / 2 for s in (-3, 3))  # where both shadows begin and end
    high = min((3 * (1 + 2) - s) / 2 for s in (-3, 3))
    n = 4000  # x = middle + radius * cos(u) tames the square roots at the ends
    m, r = (low + high) / 2, (high - low) / 2
    steps = (math.pi * (k + 0.5) / n for k in range(n))
    return sum(2 * half(m + r * math.cos(u)) * r * math.sin(u) for u in steps) * math.pi / n


def geo_054():
    mirrors = (1 + 0j, cmath.exp(1j * math.radians(12)))
    p, v, at, hits, nearest = 10 + 0j, cmath.exp(1j * math.radians(150)), 0, 0, 10.0
    while True:
        other = mirrors[1 - at]
        way = _cross(p, other) / _cross(other, v)  # p + way * v is on the line of the other mirror
        meets = way > 0 and _dot(other, p + way * v) > 0
        foot = max(-_dot(p, v), 0.0)
        nearest = min(nearest, abs(p + (min(foot, way) if meets else foot) * v))
        if not meets:
            return hits, nearest
        p, v, at, hits = p + way * v, other**2 * v.conjugate(), 1 - at, hits + 1


def geo_055():
    a, b, c = _triangle(8, 9, 7)

    def area(x):
        return abs(_area(a, _circle(a, b, x)[0], _circle(a, c, x)[0]))

    return area(_least(area, 0.01, 7.99))


def geo_056():
    def figure(base):
        a, b, c = _triangle(base, 18, 9)
        d = (18 * b + 9 * c) / 27
        centre = _meet(d, d + 1j, (a + d) / 2, (a + d) / 2 + 1j * (a - d))
        return abs(_again(centre, a, b - a) - b) - 4, abs(_again(centre, a, c - a) - c)

    return figure(_root(lambda base: figure(base)[0], 9.5, 26))[1]


def geo_057():
    a, b, c = 0j, 7 + 1j, 9 + 8j
    d = 2 * ((a + c) / 2 + 3 * cmath.exp(0.7j)) - b
    found = []
    for start in (0j, 4 - 9j):
        z = start
        for mast in (a, b, c, d) * 10:
            z = mast - (z - mast)
        found.append(abs(z - start))
    assert abs(found[0] - found[1]) < 1e-6
    return found[0]


def geo_058():
    # two opposite runners make 8 t, 20 t or 28 t an odd integer, so 840 t is an integer
    lap, count = 840, 0
    for j in range(1, lap):
        places = {n * j % lap for n in (1, 5, 15)}
        opposite = any((p - q) % lap == lap // 2 for p in places for q in places)
        count += len(places) == 3 and opposite
    return count


def geo_059():
    def distance(t):
        return abs(3 * t - (14 - 5 * t) * cmath.exp(1j * math.pi / 3))

    return distance(_least(distance, 0, 2.8))


def geo_060():
    a, b, c = _triangle(14, 13, 15)
    h = _meet(a, _foot(a, b, c), b, _foot(b, c, a))
    centre, _ = _circle(a, b, h)
    return abs(_again(centre, b, c - b) - c)


def geo_061():
    wall = cmath.exp(1j * math.pi / 3)
    p = _meet(2j, 2j + 1, -3j * wall, -3j * wall + wall)

    def area(t):
        way = cmath.exp(1j * t)
        return abs(_area(0j, _meet(p, p + way, 0j, 1 + 0j), _meet(p, p + way, 0j, wall)))

    # the fence meets both walls on their own side of O for directions between the walls' lines
    return area(_least(area, math.pi / 3 + 0.01, math.pi - 0.01))


def geo_062():
    def next_ball(place, r, sine):
        """The ball above touches the wall, so its radius is sine times its distance."""
        above = _root(lambda d: d - place - r - sine * d, place, 1e4)
        return above, sine * above

    def highest(sine):
        return next_ball(*next_ball(4 / sine, 4, sine), sine)

    place, r = highest(_root(lambda sine: highest(sine)[1] - 9, 0.01, 0.5))
    return place + r


def geo_063():
    # M = 0, A and B = +-6j with MA * MB = 36, centre -m, tangents meeting at T = 36 / m
    a = 6j

    def figure(m):
        o = complex(-m)
        t = _meet(a, a + 1j * (a - o), 0j, 1 + 0j)
        r = abs(a - o)
        (angle,) = _roots(lambda u: abs(4 * cmath.exp(1j * u) - o) - r, 0, math.pi)
        c = 4 * cmath.exp(1j * angle)
        assert math.isclose(abs(_again(o, c, c)), 9)
        return abs(t - c), r

    return figure(_root(lambda m: figure(m)[0] - 8, 2.6, 5.0))[1]


def geo_065():
    def polygon(n):
        points, step = [0j, 1 + 0j], 1 + 0j
        while len(points) < n:
            step *= cmath.exp(2j * math.pi / n)
            points.append(points[-1] + step)
        return points

    (_, _, c, _, e), (_, _, p, _, _, s) = polygon(5), polygon(6)
    return _angle(p, _meet(p, c, s, e), s)


def geo_066():
    a, b, c, d = 0j, 8 + 0j, 8 + 6j, 6j

    def gap(s):
        p = b + s * (d - b)
        return abs(_meet(p, p + 1j * (p - a), b, c) - a) - 10

    (place,) = _roots(gap, 0.001, 0.999)
    return 10 * place


def geo_068():
    def figure(b):
        pa, pb, pc = _triangle(6, b, 3)
        d, e = (pb + pc) / 2, (3 * pc + 6 * pa) / 9
        centre = (6 * pa + b * pb + 3 * pc) / (9 + b)
        f, p = _foot(centre, pa, pb), _meet(pa, d, pb, e)
        return _cross(p - pc, f - pc)

    (b,) = _roots(figure, 3.01, 8.99)
    return b


def geo_069():
    a, b, c = 1 + 6j, 0j, 7 + 0j
    p = a + ((b + c) / 2 - a) * 3 / 4
    return abs(_area(p, _meet(b, p, a, c), _meet(c, p, a, b)) / _area(a, b, c))


def geo_070():
    found = set()
    for a, b, c, d in ((0j, 7 + 0j, 18 + 8j, -5 + 8j), (0j, 7 + 0j, 33 + 5j, 10 + 5j)):
        assert math.isclose(abs(c - d), 23)

        def fence(s, a=a, b=b, c=c, d=d):
            return a + s * (d - a), b + s * (c - b)

        def width(s, fence=fence):
            p, q = fence(s)
            return abs(p - q)

        at = [0.0, *(_root(lambda s, n=n: width(s) - n, 0, 1) for n in (13, 17)), 1.0]
        areas = [_area(*fence(s), *fence(t)[::-1]) for s, t in itertools.pairwise(at)]
        found.add(tuple(round(area / areas[0], 9) for area in areas))
    (ratio,) = found
    assert all(part == int(part) for part in ratio)
    return tuple(map(int, ratio))


def geo_072():
    x, p, q, r = sp.symbols("x p q r")
    circle = x**2 + x**4 + p * x + q * x**2 + r
    tangent = 2 + 4 + p + 2 * q  # the gradient at (1, 1) times the direction (1, 2)
    found = sp.solve([circle.subs(x, 1), circle.subs(x, 3), tangent], [p, q, r])
    (place,) = set(sp.roots(circle.subs(found), x)) - {1, 3}
    return place, place**2


def geo_073():
    points = []
    for k in range(5000):
        way = 10 * cmath.exp(2j * math.pi * k / 5000)  # from the first end to the second
        second = way.imag / math.sin(math.pi / 3) * cmath.exp(1j * math.pi / 3)
        points.append(second - way / 2)
    return abs(_area(*points))


def geo_074():
    a, b, c, r = unknowns = sp.symbols("a b c r")
    equations = [  # squared distances from the wires, and the distance from the pane
        b**2 + c**2 - r**2,
        c**2 + a**2 - r**2,
        a**2 + b**2 - r**2,
        (12 - a - b - c) / sp.sqrt(3) - r,
    ]
    found = set()
    for start in ((1, 2, 3, 2), (4, 1, 2, 5), (3, 5, 3, 1)):
        *centre, radius = map(float, sp.nsolve(equations, unknowns, start))
        assert min(centre) > 0
        assert sum(centre) < 12
        found.add(round(radius, 9))
    (radius,) = found
    return radius


def geo_075():
    def length(t):
        return math.hypot(5 * math.cos(t), 3 * math.sin(t) + 3)

    return length(_least(lambda t: -length(t), -math.pi / 2, math.pi / 2))


def geo_076():
    x, y = sp.symbols("x y", real=True)
    h = sp.symbols("h", positive=True)
    places = ((0, sp.Rational(5, 4)), (900, 1), (1400, sp.Rational(13, 12)))
    found = sp.solve([(x - a) ** 2 + y**2 - (c * h) ** 2 for a, c in places], [x, y, h], dict=True)
    (height,) = {s[h] for s in found}
    return height


def geo_077():
    def gap(m):
        minute, hour = math.radians(6 * m), math.radians(90 + m / 2)
        return abs(8 * cmath.exp(1j * minute) - 3 * cmath.exp(1j * hour)) - 7

    return min(_roots(gap, 0, 60))


def geo_078():
    a, b = 3 + 0j, cmath.rect(5, math.pi / 6)

    def price(x, y):
        p = complex(x, y)
        return abs(p - a) + abs(p - b) + math.sqrt(2) * abs(p)

    def best(y):
        return price(_least(lambda x: price(x, y), 0, 4, 10), y)

    return best(_least(best, -1, 3, 10))


def geo_079():
    corners = [5 / math.cos(math.pi / 8) * cmath.exp(0.25j * math.pi * k) for k in range(9)]
    assert math.isclose(
        (corners[0] + corners[1]).real ** 2 + (corners[0] + corners[1]).imag ** 2, 100
    )

    def place(s):
        side, part = int(s) % 8, s - int(s)
        return corners[side] + part * (corners[side + 1] - corners[side])

    def distance(s):
        return abs(place(s) - place(s + 2))

    return distance(_least(distance, 0, 8, 800))


def geo_082():
    # random windows, begun with a pinwheel of four bars; the panes are counted as regions
    def block(bars, across, at, start, way):
        """Places of the bars, or the frame, that a bar at `at` meets on its way from `start`."""
        met = [p for turned, p, low, high in bars if turned != across and low < at < high]
        met = [p for p in [0, 1000, *met] if (p - start) * way > 0]
        return sorted(met, key=lambda p: (p - start) * way)

    def panes(bars):
        cuts = [sorted({0, 1000, *(b[1] for b in bars if b[0] == turned)}) for turned in (0, 1)]
        cells = set(itertools.product(range(len(cuts[0]) - 1), range(len(cuts[1]) - 1)))
        walls = {
            (turned, cuts[turned].index(p), k)
            for turned, p, low, high in bars
            for k, q in enumerate(cuts[1 - turned])
            if low <= q < high
        }
        count = 0
        while cells:
            count += 1
            stack = [cells.pop()]
            while stack:
                i, j = stack.pop()
                for there, wall in (
                    ((i + 1, j), (0, i + 1, j)),
                    ((i - 1, j), (0, i, j)),
                    ((i, j + 1), (1, j + 1, i)),
                    ((i, j - 1), (1, j, i)),
                ):
                    if there in cells and wall not in walls:
                        cells.remove(there)
                        stack.append(there)
        return count

    def crossings(bars):
        return sum(
            b[0] != c[0] and b[2] < c[1] < b[3] and c[2] < b[1] < c[3]
            for b, c in itertools.combinations(bars, 2)
        )

    found = set()
    for seed in range(3):
        draw = random.Random(seed)
        bars = [(0, 300, 0, 700), (1, 700, 0, 700), (0, 700, 300, 1000), (1, 300, 300, 1000)]
        while panes(bars) < 40:
            across, at, start = draw.randrange(2), draw.randrange(1, 1000), draw.randrange(1, 1000)
            if any(at == b[1] or start == b[1] for b in bars):
                continue
            ways = [block(bars, across, at, start, way) for way in (-1, 1)]
            more = crossings(bars) < 7  # then the new bar runs across the first one on its way up
            ends = [ways[0][0], ways[1][min(more, len(ways[1]) - 1)]]
            bars.append((across, at, *ends))
        assert (panes(bars), crossings(bars)) == (40, 7)
        found.add(len(bars))
    (count,) = found
    return count


def geo_083():
    # an instance: the small rhombicosidodecahedron; its faces as supporting planes
    g = (1 + math.sqrt(5)) / 2
    points = set()
    for x, y, z in ((1, 1, g**3), (g * g, g, 2 * g), (2 + g, 0, g * g)):
        for u, v, w in itertools.product((x, -x), (y, -y), (z, -z)):
            points |= {(u, v, w), (v, w, u), (w, u, v)}
    points = sorted({tuple(c + 0.0 for c in p) for p in points})
    faces = set()
    for origin in points:
        near = sorted(points, key=lambda p, o=origin: math.dist(p, o))[1:5]  # along the edges
        for p, q in itertools.combinations(near, 2):
            u, v = ([a - b for a, b in zip(r, origin, strict=True)] for r in (p, q))
            n = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
            level = _dot3(n, origin)
            sides = [_dot3(n, r) - level for r in points]
            if min(sides) > -1e-9 or max(sides) < 1e-9:
                faces.add(frozenset(k for k, side in enumerate(sides) if abs(side) < 1e-9))
    for k in range(len(points)):
        assert sorted(len(face) for face in faces if k in face) == [3, 4, 4, 5]
    return sum(not (f & h) for f, h in itertools.combinations(faces, 2))


def geo_084():
    # any two neighbouring free vertices are improved until nothing changes
    arcs = [0.1, 0.9, 0.3, 0.6, 0.5, math.pi - 2.4]

    def chords(x, y):
        return math.sin(x / 2) + math.sin(y / 2)

    for _ in range(60):
        for k in range(5):
            both = arcs[k] + arcs[k + 1]
            arcs[k] = _least(lambda x, both=both: -chords(x, both - x), 0, both, 4)
            arcs[k + 1] = both - arcs[k]
    points = [cmath.exp(1j * sum(arcs[:k])) for k in range(7)]
    return _length(points)


def geo_085():
    def area(gaps):
        touch = [cmath.exp(1j * sum(gaps[:k])) for k in range(6)]
        corners = [_meet(p, p + 1j * p, q, q + 1j * q) for p, q in itertools.pairwise(touch)]
        return _area(*corners)

    def least(order):
        def value(x, y):
            free = iter((x, y, math.pi - x - y))
            return area([math.pi / 2 if right else next(free) for right in order])

        def best(x):
            return value(x, _least(lambda y: value(x, y), 0.05, math.pi - x - 0.05, 4))

        return best(_least(best, 0.1, 2.8, 4))

    return min(least((1, 1, 0, 0, 0)), least((1, 0, 1, 0, 0)))


def geo_086():
    x, y = sp.symbols("x y")
    eighth = sp.integrate(4 - x**2, (y, 0, x), (x, 0, 2))  # there |y| <= |x|: the lower vault
    return 8 * eighth


def geo_087():
    # water below the plane z = 14 - k (4 - x) through the point of the rim at x = 4
    def slices(f, n=400):
        steps = (math.pi * (j + 0.5) / n for j in range(n))  # x = 4 cos u, chord 8 sin u
        return sum(f(4 * math.cos(u)) * 8 * math.sin(u) * 4 * math.sin(u) for u in steps) * (
            math.pi / n
        )

    def left(k):
        return slices(lambda x: max(0.0, 14 - k * (4 - x))) - 11 / 14 * slices(lambda x: 14.0)

    k = _root(left, 0, 5)
    return slices(lambda x: math.hypot(1, k) if 14 - k * (4 - x) >= 0 else 0.0)


def geo_088():
    found = []
    for t in (0.4, 1.0, 2.0, 2.9):
        # centre of c: |c - 2| = 2 - r and |c - 1| = 1 + r
        way = cmath.exp(1j * t)
        r = _root(lambda r, way=way: abs(1 + (1 + r) * way - 2) - (2 - r), 1e-6, 2)
        centre = 1 + (1 + r) * way
        x, y = 2 + (centre - 2) / abs(centre - 2) * 2, 1 + way
        assert math.isclose(abs(x - centre), r)
        found.append(_meet(x, y, 0j, 1 + 0j).real)
    assert max(found) - min(found) < 1e-9
    return found[0]


def geo_089():
    corners, spots = [4 + 0j, 3j, -4 + 0j, -3j], []
    for p, q in zip(corners, corners[1:] + corners[:1], strict=True):
        spots += [x * 12 / abs(x) ** 2 for x in (p + (q - p) * k / 5000 for k in range(5000))]
    return _area(*spots)


def geo_090():
    v = [cmath.exp(1j * math.pi * k / 6) for k in range(12)]
    return sum(1 / (abs(v[k] - v[0]) * abs(v[k + 1] - v[0])) for k in range(1, 11))
