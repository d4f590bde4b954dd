"""Writes golden.json: inputs, and what NumPy, SciPy, statsmodels and NLTK compute from them.

    python golden.py > golden.json

The tests read only the JSON. What no library offers is computed here in another way than
in Go: CR2 with matrices, Newcombe's interval for pairs from his formula, and intervals
of d by integrating the noncentral t numerically (SciPy's own has gaps).
"""
import json
import random

import numpy as np
import scipy
import statsmodels
from nltk.metrics import binary_distance
from nltk.metrics.agreement import AnnotationTask
from scipy import integrate, optimize, special, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower, TTestPower
from statsmodels.stats.proportion import confint_proportions_2indep, power_proportions_2indep, proportion_confint, proportion_effectsize

rng = np.random.default_rng(20260114)


def listed(a):
    return [float(x) for x in a]


def wilson():
    out = []
    for k, n, c in [(0, 1, 0.95), (1, 1, 0.95), (3, 10, 0.95), (50, 100, 0.99), (999, 1000, 0.9), (123456, 1000000, 0.95)]:
        low, high = proportion_confint(k, n, 1 - c, method="wilson")
        out.append(dict(k=k, n=n, confidence=c, low=low, high=high))
    return out


def newcombe():
    out = []
    for k1, n1, k2, n2, c in [(56, 70, 48, 80, 0.95), (9, 10, 3, 10, 0.95), (10, 10, 0, 20, 0.95), (0, 10, 0, 20, 0.95), (300, 1000, 280, 900, 0.9)]:
        low, high = confint_proportions_2indep(k1, n1, k2, n2, compare="diff", method="newcomb", alpha=1 - c)
        out.append(dict(k1=k1, n1=n1, k2=k2, n2=n2, confidence=c, low=low, high=high))
    return out


def newcombe_paired():
    out = []
    for e, f, g, h in [(14, 5, 0, 22), (1, 1, 7, 12), (36, 12, 2, 0), (20, 12, 2, 16), (0, 30, 0, 0), (53, 1, 1, 0), (5, 9, 11, 3)]:
        n = e + f + g + h
        p, q = (e + f) / n, (e + g) / n
        l1, u1 = proportion_confint(e + f, n, 0.05, method="wilson")
        l2, u2 = proportion_confint(e + g, n, 0.05, method="wilson")
        product = (e + f) * (g + h) * (e + g) * (f + h)
        num = e * h - f * g
        if num > n / 2:
            num = num - n / 2
        elif num >= 0:
            num = 0
        phi = num / np.sqrt(product) if product else 0
        low = p - q - np.sqrt((p - l1) ** 2 - 2 * phi * (p - l1) * (u2 - q) + (u2 - q) ** 2)
        high = p - q + np.sqrt((q - l2) ** 2 - 2 * phi * (q - l2) * (u1 - p) + (u1 - p) ** 2)
        table = [[e, f], [g, h]]
        out.append(dict(both=e, only_a=f, only_b=g, neither=h, low=max(-1, low), high=min(1, high), p=mcnemar(table, exact=True).pvalue))
    return out


def samples():
    yield listed(np.round(rng.normal(0.4, 1, 7), 2)), listed(np.round(rng.normal(0, 3, 8), 2))
    yield listed(rng.integers(0, 4, 9)), listed(rng.integers(0, 5, 6))
    yield listed(rng.exponential(1, 11)), listed(rng.exponential(1.5, 11))
    yield [1e9 + 1, 1e9 + 2, 1e9 + 4], [1e9 + 1, 1e9 + 1, 1e9 + 2]


def two_samples():
    out = []
    for a, b in samples():
        t = stats.ttest_ind(a, b, equal_var=False)
        low, high = t.confidence_interval(0.95)
        out.append(dict(a=a, b=b, low=low, high=high, p=t.pvalue))
    return out


def paired():
    out = []
    cases = [rng.normal(0.3, 1, 8), rng.integers(-2, 4, 12), np.round(rng.normal(0.2, 0.3, 10), 1), [0, 0, 0.1, 0.2, 0.3, -0.1, 0.1]]
    for d in cases:
        d = np.asarray(d, dtype=float)
        zero = np.zeros(len(d))
        t = stats.ttest_rel(d, zero)
        low, high = t.confidence_interval(0.95)
        flips = stats.permutation_test((d, zero), lambda x, y: abs(np.mean(x - y)), alternative="greater", n_resamples=np.inf, permutation_type="samples", vectorized=False)
        out.append(dict(differences=listed(d), low=low, high=high, flip=flips.pvalue))
    return out


def fisher():
    out = []
    for k1, n1, k2, n2 in [(3, 4, 1, 4), (8, 10, 1, 6), (0, 5, 0, 7), (10, 10, 0, 10), (120, 400, 95, 410)]:
        p = stats.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]]).pvalue
        out.append(dict(k1=k1, n1=n1, k2=k2, n2=n2, p=p))
    return out


def power_of(m, p):
    w, v = np.linalg.eigh(m)
    return (v * w**p) @ v.T


def cr2():
    """CR2 and Bell-McCaffrey in general form, for a regression on a constant."""
    out = []
    for sizes in [[3, 3, 3, 3], [1, 2, 3, 4, 5, 20], [10, 1], [1] * 9, list(rng.integers(1, 30, 15))]:
        groups = [np.round(rng.normal(rng.normal(0, 1), 1, s), 3) for s in sizes]
        y = np.concatenate(groups)
        label = np.repeat(np.arange(len(sizes)), sizes)
        x = np.ones((len(y), 1))
        bread = np.linalg.inv(x.T @ x)
        hat = x @ bread @ x.T
        beta = (bread @ x.T @ y)[0]
        e = y - beta
        rest = np.eye(len(y)) - hat
        variance, columns = 0.0, []
        for g in range(len(sizes)):
            at = label == g
            adjust = power_of(np.eye(at.sum()) - hat[np.ix_(at, at)], -0.5)
            variance += (bread @ x[at].T @ adjust @ e[at])[0] ** 2
            columns.append(rest[:, at] @ adjust @ x[at] @ bread)
        gg = np.hstack(columns)
        lam = np.linalg.eigvalsh(gg.T @ gg)
        df = lam.sum() ** 2 / (lam**2).sum()
        half = stats.t.ppf(0.975, df) * np.sqrt(variance)
        out.append(dict(groups=[listed(g) for g in groups], value=beta, low=beta - half, high=beta + half, df=df))
    return out


def adjusted():
    out = []
    for ps in [[0.01, 0.04, 0.03, 0.005], [0.5], [0.9, 0.8, 0.001, 0.02, 0.02, 1.0, 0.0], listed(rng.uniform(0, 0.2, 20))]:
        out.append(dict(ps=ps, holm=listed(multipletests(ps, method="holm")[1]), bh=listed(multipletests(ps, method="fdr_bh")[1])))
    return out


def distributions():
    t = [dict(df=df, confidence=c, q=stats.t.ppf((1 + c) / 2, df)) for df in [1, 1.5, 3.7, 12, 250, 1e6] for c in [0.5, 0.9, 0.95, 0.999]]
    tails = [dict(df=df, t=x, p=2 * stats.t.sf(abs(x), df)) for df in [1, 2.5, 30, 1e5] for x in [0.0, 0.3, -2.0, 8.0]]
    cdf = [dict(k=k, n=n, p=p, cdf=stats.binom.cdf(k, n, p)) for k, n, p in [(0, 1, 0.5), (3, 10, 0.3), (50, 100, 0.5), (470, 1000, 0.5), (499_000, 1_000_000, 0.5), (99_050, 100_000, 0.99)]]
    return dict(t=t, tails=tails, binomial=cdf)


def noncentral(t, df, nc):
    """P(T <= t): a normal around nc over a spread that is chi distributed."""
    root = np.sqrt(df)
    edge = 12 / np.sqrt(2 * df)
    return integrate.quad(lambda s: stats.norm.cdf(t * s - nc) * stats.chi.pdf(s * root, df) * root, max(0, 1 - edge), 1 + edge, epsabs=1e-12, epsrel=1e-12, limit=500)[0]


def pivot(t, df, root):
    """The noncentralities that make t the upper and the lower 2.5%, over root."""
    def solve(p):
        return optimize.brentq(lambda nc: noncentral(t, df, nc) - p, t - 30, t + 30, xtol=1e-13)
    return solve(0.975) / root, solve(0.025) / root


def standardized():
    out = []
    for n, m, shift in [(10, 10, 0.5), (4, 25, -1), (60, 45, 0.2), (3, 3, 4), (500, 400, 0.1)]:
        a, b = np.round(rng.normal(shift, 1, n), 3), np.round(rng.normal(0, 1.3, m), 3)
        df = n + m - 2
        sd = np.sqrt(((n - 1) * a.var(ddof=1) + (m - 1) * b.var(ddof=1)) / df)
        d = (a.mean() - b.mean()) / sd
        root = np.sqrt(n * m / (n + m))
        low, high = pivot(d * root, df, root)
        j = special.gamma(df / 2) / (np.sqrt(df / 2) * special.gamma((df - 1) / 2)) if df < 300 else np.exp(special.gammaln(df / 2) - special.gammaln((df - 1) / 2)) / np.sqrt(df / 2)
        out.append(dict(a=listed(a), b=listed(b), d=d, low=low, high=high, g=d * j, g_low=low * j, g_high=high * j))
    return out


def paired_effect():
    out = []
    for n, shift in [(5, 1), (20, 0.3), (200, 0.0)]:
        x = np.round(rng.normal(shift, 1, n), 3)
        d = x.mean() / x.std(ddof=1)
        low, high = pivot(d * np.sqrt(n), n - 1, np.sqrt(n))
        out.append(dict(a=listed(x), d=d, low=low, high=high))
    return out


def cohen_h():
    return [dict(k1=k1, n1=n1, k2=k2, n2=n2, h=proportion_effectsize(k1 / n1, k2 / n2)) for k1, n1, k2, n2 in [(10, 40, 20, 50), (1, 9, 8, 9), (300, 1000, 250, 1000)]]


def power():
    means = [dict(d=d, n=n, alpha=a, power=TTestIndPower().power(d, n, a)) for d in [0.1, 0.5, -0.8, 2.0] for n in [2, 10, 64, 1000] for a in [0.05, 0.001]]
    pairs = [dict(d=d, n=n, alpha=a, power=TTestPower().power(d, n, a)) for d in [0.1, 0.5, 1.5] for n in [3, 34, 500] for a in [0.05, 0.01]]
    both = [dict(p1=p, p2=q, n=n, alpha=a, power=power_proportions_2indep(p - q, q, n, alpha=a).power) for p, q in [(0.5, 0.75), (0.1, 0.12), (0.9, 0.3)] for n in [10, 77, 2000] for a in [0.05, 0.01]]
    # statsmodels returns NaN where the power is almost 1.
    means, pairs, both = ([c for c in cases if not np.isnan(c["power"])] for cases in (means, pairs, both))
    return dict(means=means, paired=pairs, shares=both)


def kappa():
    out = []
    for e, f, g, h in [(20, 5, 10, 15), (45, 15, 25, 15), (25, 35, 5, 35), (1, 2, 3, 40), (7, 1, 0, 2), (2, 9, 8, 1)]:
        r = cohens_kappa([[e, f], [g, h]])
        out.append(dict(both=e, only_a=f, only_b=g, neither=h, kappa=r.kappa, low=r.kappa_low, high=r.kappa_upp))
    return out


def alpha():
    """Krippendorff's alpha by NLTK, whose distances are functions."""
    out = []
    for seed, (units, raters, kinds, missing) in enumerate([(8, 2, 2, 0), (40, 3, 4, 0.2), (15, 5, 3, 0.5), (100, 2, 5, 0.0)]):
        r = random.Random(seed)
        rows = []
        for _ in range(units):
            true = r.randrange(kinds)
            rows.append([None if r.random() < missing else (true if r.random() < 0.6 else r.randrange(kinds)) for _ in range(raters)])
        rows = [[v for v in row if v is not None] for row in rows]
        rows = [row for row in rows if len(row) > 1]
        counts = [sum(row.count(k) for row in rows) for k in range(kinds)]

        def ordinal(x, y):
            x, y = min(x, y), max(x, y)
            return 0.0 if x == y else float((sum(counts[x : y + 1]) - (counts[x] + counts[y]) / 2) ** 2)

        data = [(f"rater {j}", str(i), v) for i, row in enumerate(rows) for j, v in enumerate(row)]
        out.append(dict(units=rows, nominal=AnnotationTask(data, binary_distance).alpha(), ordinal=AnnotationTask(data, ordinal).alpha()))
    return out


def kappas():
    """Cohen's kappa of more than two ratings, plain and with weights that grow with the square of the distance."""
    out = []
    for seed, (things, kinds) in enumerate([(12, 3), (60, 5), (200, 4)]):
        r = random.Random(seed)
        rows = [(a, a if r.random() < 0.5 else r.randrange(kinds)) for a in (r.randrange(kinds) for _ in range(things))]
        table = [[rows.count((a, b)) for b in range(kinds)] for a in range(kinds)]
        out.append(dict(units=rows, nominal=cohens_kappa(table).kappa, squared=cohens_kappa(table, wt="quadratic").kappa))
    return out


def spearman():
    """p is that of all orders of x up to 9 values, else of 200,000 orders by chance. t is that of Student's t."""
    out = []
    for seed, n in enumerate([5, 12, 60, 4, 7, 8, 9, 10, 25]):
        r = random.Random(seed)
        x = [r.randrange(10) for _ in range(n)]
        y = [a * (min(seed, 4) - 1) + r.randrange(8 if seed < 3 else 30) for a in x]
        b = stats.rankdata(y) - (n + 1) / 2

        def absolute(x, axis):
            return np.abs(((stats.rankdata(x, axis=axis) - (n + 1) / 2) * b).sum(axis=axis))

        p = stats.permutation_test(
            (x,), absolute, permutation_type="pairings", alternative="greater", vectorized=True, batch=10000,
            n_resamples=np.inf if n <= 9 else 200_000, random_state=np.random.default_rng(seed),
        ).pvalue
        found = stats.spearmanr(x, y)
        out.append(dict(x=x, y=y, rho=found.statistic, p=p, t=found.pvalue))
    return out


golden = dict(
    made_with=dict(numpy=np.__version__, scipy=scipy.__version__, statsmodels=statsmodels.__version__),
    wilson=wilson(),
    newcombe=newcombe(),
    newcombe_paired=newcombe_paired(),
    two_samples=two_samples(),
    paired=paired(),
    fisher=fisher(),
    cr2=cr2(),
    adjusted=adjusted(),
    distributions=distributions(),
    standardized=standardized(),
    paired_effect=paired_effect(),
    cohen_h=cohen_h(),
    power=power(),
    kappa=kappa(),
    alpha=alpha(),
    kappas=kappas(),
    spearman=spearman(),
)
print("{" + ",\n".join(json.dumps(k) + ": " + json.dumps(v, default=float) for k, v in golden.items()) + "}")
