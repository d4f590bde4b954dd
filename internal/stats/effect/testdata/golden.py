"""Writes golden.json: what NumPy, SciPy and statsmodels say about the inputs in it.

    python golden.py > golden.json

The tests read the JSON only. Intervals of d come from integrating the noncentral t
numerically (SciPy's own has gaps), and Cliff's delta from going through all pairs.
"""
import json

import numpy as np
import scipy
import statsmodels
from scipy import integrate, optimize, special, stats
from statsmodels.stats.contingency_tables import Table2x2
from statsmodels.stats.power import TTestIndPower, TTestPower
from statsmodels.stats.proportion import power_proportions_2indep, proportion_effectsize

rng = np.random.default_rng(20260115)


def listed(a):
    return [float(x) for x in a]


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


def paired():
    out = []
    for n, shift in [(5, 1), (20, 0.3), (200, 0.0)]:
        x = np.round(rng.normal(shift, 1, n), 3)
        d = x.mean() / x.std(ddof=1)
        low, high = pivot(d * np.sqrt(n), n - 1, np.sqrt(n))
        out.append(dict(a=listed(x), d=d, low=low, high=high))
    return out


def cliff():
    out = []
    for a, b in [(rng.integers(0, 6, 12), rng.integers(1, 8, 9)), (rng.normal(0, 1, 30), rng.normal(0.5, 1, 20)), (rng.integers(0, 2, 15), rng.integers(0, 2, 15))]:
        d = np.sign(np.subtract.outer(a, b).astype(float))
        n, m = d.shape
        delta = d.mean()
        rows, columns = d.mean(axis=1), d.mean(axis=0)
        v = (m**2 * ((rows - delta) ** 2).sum() + n**2 * ((columns - delta) ** 2).sum() - ((d - delta) ** 2).sum()) / (n * m * (n - 1) * (m - 1))
        v = max(v, (1 - delta**2) / (n * m - 1))
        z = stats.norm.ppf(0.975)
        root = z * np.sqrt(v) * np.sqrt((1 - delta**2) ** 2 + z**2 * v)
        under = 1 - delta**2 + z**2 * v
        out.append(dict(a=listed(a), b=listed(b), d=delta, low=(delta - delta**3 - root) / under, high=(delta - delta**3 + root) / under))
    return out


def shares():
    out = []
    for k1, n1, k2, n2 in [(10, 40, 20, 50), (1, 9, 8, 9), (300, 1000, 250, 1000)]:
        t = Table2x2([[k1, n1 - k1], [k2, n2 - k2]])
        low, high = t.oddsratio_confint(0.05)
        out.append(dict(k1=k1, n1=n1, k2=k2, n2=n2, odds=t.oddsratio, low=low, high=high, h=proportion_effectsize(k1 / n1, k2 / n2)))
    return out


def correlations():
    out = []
    for n in [5, 30, 200]:
        x = np.round(rng.normal(0, 1, n), 1)
        y = np.round(x + rng.normal(0, 1, n), 1)
        r = stats.pearsonr(x, y)
        ci = r.confidence_interval(0.95)
        out.append(dict(x=listed(x), y=listed(y), r=r.statistic, low=ci.low, high=ci.high, rho=stats.spearmanr(x, y).statistic))
    return out


def power():
    means = [dict(d=d, n=n, alpha=a, power=TTestIndPower().power(d, n, a)) for d in [0.1, 0.5, -0.8, 2.0] for n in [2, 10, 64, 1000] for a in [0.05, 0.001]]
    pairs = [dict(d=d, n=n, alpha=a, power=TTestPower().power(d, n, a)) for d in [0.1, 0.5, 1.5] for n in [3, 34, 500] for a in [0.05, 0.01]]
    both = [dict(p1=p, p2=q, n=n, alpha=a, power=power_proportions_2indep(p - q, q, n, alpha=a).power) for p, q in [(0.5, 0.75), (0.1, 0.12), (0.9, 0.3)] for n in [10, 77, 2000] for a in [0.05, 0.01]]
    # Where the power is all but 1, statsmodels has NaN.
    means, pairs, both = ([c for c in cases if not np.isnan(c["power"])] for cases in (means, pairs, both))
    return dict(means=means, paired=pairs, shares=both)


golden = dict(
    made_with=dict(numpy=np.__version__, scipy=scipy.__version__, statsmodels=statsmodels.__version__),
    standardized=standardized(),
    paired=paired(),
    cliff=cliff(),
    shares=shares(),
    correlations=correlations(),
    power=power(),
)
print("{" + ",\n".join(json.dumps(k) + ": " + json.dumps(v, default=float) for k, v in golden.items()) + "}")
