import itertools
import math
from fractions import Fraction

import numpy as np
import sympy as sp


def square(n):
    return n >= 0 and math.isqrt(n) ** 2 == n


def exponent(p, n):
    return next(k for k in itertools.count() if n % p ** (k + 1))


def digit_sum(n):
    return sum(map(int, str(n)))


def num_001():
    return {n for n in range(120) if square(4**n + 12 * 2**n + 612)}


def num_002():
    return {n for n in range(120) if square(4**n + 2**n + 124)}


def num_005():
    return sum((x**3 - x) % 2520 == 0 for x in range(1, 2521))


def num_006():
    return sum((pow(x, 101, 2521) - x) % 2521 == 0 for x in range(1, 2522))


def num_007():
    return sp.Integer(math.gcd(10**60 + 1, 10**84 + 1))


def num_008():
    return exponent(7, 10**1029 + 1)


def num_009():
    return sum(math.gcd(3 * 2**n + 5, 2 ** (n + 2) + 11) > 1 for n in range(1, 1001))


def num_010():
    return sum((4**n + 11 * 2**n + 1564) % (2**n + 3) == 0 for n in range(300))


def num_011():
    fractions = [Fraction(a, 1260) for a in range(1, 1260) if math.gcd(a, 1260) == 1]
    return sp.Rational(str(sum(r * r * (3 - 2 * r) for r in fractions)))


def num_012():
    return math.prod(a for a in range(1, 1260) if math.gcd(a, 1260) == 1) % 1260


def num_013():
    return math.factorial(15) ** 2 % 899


def num_014():
    return exponent(899, math.factorial(2028) ** 2)


def num_017():
    pairs = itertools.product(range(1, 1001), repeat=2)
    return sum(x * x + y * y + 2 == 4 * x * y for x, y in pairs)


def num_018():
    pairs = itertools.product(range(1, 1001), repeat=2)
    return sum(x * x + 4 * y * y == 5 * x * y + 54 for x, y in pairs)


def num_020():
    (found,) = [n for n in range(1, 5000) if square(n * (n + 1) * (n * n + n + 1) + 7)]
    return found


def num_021():
    (found,) = [n for n in range(1, 200) if sp.isprime(n * (n + 1) * (n * n + n + 2) - 3)]
    return found


def num_022():
    return sum(math.atan(d / 120) for d in sp.divisors(14400))


def num_023():
    return sum(sp.Rational(sp.divisor_count(d), d) for d in sp.divisors(14400))


def num_024():
    found = 0
    for n in range(2, 2**12):  # a number with such an expansion is m / (2**12 - 1)
        digits = f"{2**36 // n:036b}"  # enough to tell two such numbers apart
        period = next(k for k in range(1, 37) if digits == (digits[:k] * 36)[:36])
        found += period == 12
    return found


def num_025():
    smooth = (2**a * 5**b for a in range(41) for b in range(41) if a or b)
    return sum(10**12 % n == 0 and 10**11 % n != 0 for n in smooth)


def num_026():
    return next(s for s in itertools.count(31) if (s % 24, s % 36, s % 50) == (19, 31, 13))


def num_027():
    return min(abs(19 + 24 * k - 27 - 42 * m) for k in range(300) for m in range(300))


def num_028():
    return sum(pow(k, 120, 143) for k in range(1, 1001)) % 143


def num_029():
    return sum(pow(k, 121, 1001) for k in range(1, 1003)) % 1001


def num_030():
    (found,) = [p for p in sp.primerange(20000) if square(p**4 + 840 * p + 216)]
    return found


def num_031():
    return {p for p in sp.primerange(20000) if square(p * p + 840 * p)}


def num_032():
    least = [0] + [1751] * 1750
    for total in range(1, 1751):
        least[total] = 1 + min(least[total - e**3] for e in range(1, 13) if e**3 <= total)
    return least[1750]


def num_033():
    for edge in itertools.count(1):
        blocks, rest = divmod(5 * edge**3, 5 * 14 * 25)
        if rest == 0 and edge % 2 == 0 and square(5 * edge**3 // 2):
            return blocks


def num_034():
    (found,) = [n for n in range(12, 30000, 12) if n == 12 * sp.divisor_count(n)]
    return found


def num_035():
    (found,) = [n for n in range(1, 100000) if n == 12 * sum(sp.ntheory.digits(n, 5)[1:])]
    return found


def num_037():
    return sum(pow(4, k, 1001) == 1 for k in range(1, 1001))


def num_040():
    pairs = itertools.combinations(sp.primerange(400), 2)
    (found,) = [p * q for p, q in pairs if (pow(7, p * q, p * q) + 1) % (p * q) == 0]
    return found


def num_041():
    sums = (
        (p, pow(2, p + 3, p) + pow(3, p + 2, p) + pow(5, p + 1, p)) for p in sp.primerange(9999)
    )
    return {p for p, total in sums if total % p == 0}


def num_043():
    n = 1
    for digits in range(1, 21):  # the presses for one digit more are a multiple of those before
        n *= next(t for t in itertools.count(1) if pow(101, n * t, 10**digits) == 1)
    return n


def num_044():
    return next(t for t in itertools.count(1) if all(5**t * x % 77 == x for x in range(77)))


def num_046():
    units = [x for x in range(1, 1001) if math.gcd(x, 1001) == 1]
    return sum(next(k for k in itertools.count(1) if pow(x, k, 1001) == 1) == 6 for x in units)


def num_049():
    pairs = itertools.product(range(1, 300), repeat=2)
    areas = ((a * b, (a + 1) ** 2 + (b + 1) ** 2 - 1) for a, b in pairs)
    return {tiles // carpet for carpet, tiles in areas if tiles % carpet == 0}


def num_051():
    pairs = itertools.combinations_with_replacement(range(1, 501), 2)
    friends = [(a, b) for a, b in pairs if (b * b + 3) % a == 0 == (a * a + 3) % b]
    return sum(math.gcd(a, b) == 1 for a, b in friends)


def num_052():
    return max(math.gcd(n * n + 3, n**3 + 5) for n in range(1, 5000))


def num_053():
    first, second = [1, 0, 3], [1, 0, 0, 5]  # the lattice of all combinations of degree below 8
    rows = [
        [0] * (8 - k - len(f)) + f + [0] * k for f in (first, second) for k in range(9 - len(f))
    ]
    for column in range(7):
        while len(live := sorted((r for r in rows if r[column]), key=lambda r: abs(r[column]))) > 1:
            for row in live[1:]:
                factor = row[column] // live[0][column]
                row[:] = [x - factor * y for x, y in zip(row, live[0], strict=True)]
        rows = [row for row in rows if not row[column]]
    return math.gcd(*(row[7] for row in rows))


def num_054():
    steps = [(s * a, t * b) for a, b in ((21, 35), (35, 21)) for s in (1, -1) for t in (1, -1)]
    seen, new = {(0, 0)}, [(0, 0)]
    while new:
        near = {(x + a, y + b) for x, y in new for a, b in steps} - seen
        new = [point for point in near if all(-140 <= c <= 340 for c in point)]
        seen.update(new)
    return sum(0 <= x <= 200 and 0 <= y <= 200 for x, y in seen)


def num_055():
    occupied = set(range(59))
    for _ in range(100):
        occupied = {x * x % 59 for x in occupied}
    return len(occupied)


def num_056():
    return sum((x * x - 3 * y * y - 5) % 31 == 0 for x in range(31) for y in range(31))


def num_057():
    whole = 2**4 * 3**6 * 5**2
    left, most = set(sp.divisors(whole)), 0
    while left:  # cards in conflict, directly or through others, then every choice of them
        group = [left.pop()]
        for card in group:
            near = {d for d in left if d * card == whole}
            left -= near
            group += near
        choices = itertools.product((0, 1), repeat=len(group))
        taken = ([d for d, yes in zip(group, choice, strict=True) if yes] for choice in choices)
        most += max(
            len(cards)
            for cards in taken
            if all(d * e != whole for d, e in itertools.combinations(cards, 2))
        )
    return most


def num_058():
    primes = [p for p in sp.primerange(3, 400) if p % 4 == 3]
    found = {p: math.prod(x + pow(x, -1, p) for x in range(1, p)) % p for p in primes}
    (c,) = [c for c in range(-9, 10) if all((r - c) % p == 0 for p, r in found.items())]
    return c


def num_060():
    cells = itertools.product(range(1, 31), repeat=2)
    return sum(i * i + j * j for i, j in cells if i * j % 31 == 1)


def num_061():
    points = itertools.product(range(1, 721), repeat=2)
    return len({(k * y // 720, y) for k, y in points if k * y % 720 == 0})


def num_062():
    for n in itertools.count(1):
        found = sp.divisors(n) if sp.divisor_count(n) == 36 else []
        odd, coprime = sum(d % 2 for d in found), sum(d % 3 > 0 for d in found)
        if (odd, coprime, sum(map(square, found))) == (12, 12, 8):
            return n


def num_063():
    odd, even = [0] * 1001, [0] * 1001
    for d in range(1, 1001):
        for n in range(d, 1001, d):
            (even if d % 2 == 0 else odd)[n] += 1
    return sum(even[n] == odd[n] + 8 for n in range(1, 1001))


def num_064():
    row = [1]
    for _ in range(100):
        row = [sum(row[max(0, k - 2) : k + 1]) for k in range(len(row) + 2)]
    return sum(c % 3 != 0 for c in row)


def num_065():
    return sum((3 * n).bit_count() == 2 * n.bit_count() for n in range(4096))


def num_066():
    powers = itertools.accumulate(exponent(2, n) for n in range(1, 1024))
    return sum(e == n - 3 for n, e in enumerate(powers, 1) if n >= 3)


def num_067():
    for n in itertools.count(1):
        top = 7 ** next(k for k in itertools.count() if 7 ** (k + 1) > n)
        if n % top * 7 + n // top == 2 * n:
            return n


def num_069():
    cubes = {y**3 for y in range(-3100, 3100)}
    return {x for x in range(-3000, 3000) if x**3 + 2 * x * x - 2 * x + 25 in cubes}


def num_070():
    window = range(800, 900)
    bases = {a: [n**4 + 4 * n**3 + a * n * n + 8 * n + 4 for n in window] for a in range(-60, 61)}
    (found,) = [a for a, values in bases.items() if any(map(square, values))]
    return found


def num_071():
    bases = itertools.combinations_with_replacement(range(1, 300), 2)
    return sum(4 * a * b == 2 * a * b + 8 * a + 8 * b + 40 for a, b in bases)


def num_073():
    found, y = 0, np.arange(-400, 401)
    x = y[:, None]
    plane = np.bincount((x * x + x * y + y * y).ravel())  # how often each value occurs
    for z in range(-136, 137):
        rest = 192**2 - 2 * z * z
        found += int(plane[rest]) if rest >= 0 else 0
    return found


def num_074():
    heights = (455**2 - x * x for x in range(-455, 456))
    return sum(1 if h == 0 else 2 for h in heights if square(h))


def num_076():
    return len({x**3 % 63 for x in range(63)}) + 1


def num_077():
    b, e = 6, 0
    for _ in range(60):
        e += exponent(3, b)
        b = (b**3 + 3 * b) % 3**200  # exponents below 200 survive
    return e


def num_078():
    wheels = [np.arange(10**6) // 10**j % 10 for j in range(6)]
    return sum(j * int(np.count_nonzero(np.diff(wheel))) for j, wheel in enumerate(wheels, 1))


def num_079():
    return sum(n**n % 11 == 1 for n in range(1, 111))


def num_080():
    ends = itertools.product(range(91), repeat=2)  # f(-1) and f(1), which with f(0) fix all values
    middles = [z for z in range(91) if z * z % 91 == z]
    found = [(a, z) for b, a in ends for z in middles if a * b % 91 == z and a * z % 91 == a]
    return sum(z * pow(a, 20, 91) % 91 == 1 for a, z in found)


def num_081():
    pair = (0, 1)
    for step in itertools.count(1):
        pair = (pair[1], (8 * pair[1] - 12 * pair[0]) % 31)
        if pair == (0, 1):
            return step


def num_082():
    numbers = (2**a * 3**b * 5**c for a, b, c in itertools.product(range(6), repeat=3))
    return sum(any(square(n - x * x) for x in range(math.isqrt(n) + 1)) for n in numbers)
