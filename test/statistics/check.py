"""Works out with SciPy and statsmodels what parley report and compare print.

    check.py FOLDER

The folder holds NAME.csv (parley export --table scores), NAME.report.json and NAME.compare.json.
The numbers must agree to three digits; P of a test by random draws to within what chance allows.
"""
import json
import math
import pathlib
import sys

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

checked = {}
BOUNDS = {"steps": (0.0, 10.0), "points": (0.0, 3.0)}  # of scores that are neither shares nor without bounds


def same(what, method, got, want):
    checked[method] = checked.get(method, 0) + 1
    for name, w in want.items():
        g = got[name]
        if g is None or not math.isclose(g, w, rel_tol=5e-4, abs_tol=5e-4):
            sys.exit(f"statistics: {what}: {name} is {g}, and {w:.6g} by SciPy and statsmodels: {got}, {want}")


def mean(xs):
    """Student's interval."""
    low, high = stats.t.interval(0.95, len(xs) - 1, loc=np.mean(xs), scale=stats.sem(xs))
    return dict(value=np.mean(xs), low=low, high=high)


def clusters(groups):
    """The variance of the mean of clusters with its degrees of freedom: CR2 by matrices."""
    n = sum(len(g) for g in groups)
    x = np.ones((n, 1))
    y = np.concatenate(groups)
    at = np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    hat = np.eye(n) - np.ones((n, n)) / n
    residual = hat @ y
    total, parts = 0.0, []
    for g in range(len(groups)):
        rows = at == g
        values, vectors = np.linalg.eigh(hat[np.ix_(rows, rows)])
        root = vectors @ np.diag([v**-0.5 if v > 1e-9 else 0 for v in values]) @ vectors.T
        total += (x[rows].T @ root @ residual[rows]).item() ** 2
        parts.append(hat[:, rows] @ root @ x[rows] / n)
    b = np.hstack(parts)
    squares = np.linalg.eigvalsh(b.T @ b)  # under independence, as Bell and McCaffrey
    return y.mean(), total / n**2, squares.sum() ** 2 / (squares**2).sum()


def estimate(q, groups, bounds=(0.0, 1.0)):
    """What the method that a quantity names makes of clusters of observations."""
    flat = np.concatenate(groups)
    if q["method"] == "t":
        return mean(flat)
    if q["method"] == "wilson":
        low, high = proportion_confint(flat.sum(), len(flat), method="wilson")
        return dict(value=flat.mean(), low=low, high=high)
    value, variance, df = clusters(groups)
    if q["method"] == "cluster t":
        half = stats.t.ppf(0.975, df) * variance**0.5
        return dict(value=value, low=value - half, high=value + half)
    if q["method"] in ("cluster wilson", "scaled wilson"):
        low, high = bounds
        share = (value - low) / (high - low)
        if share in (0, 1) or np.ptp(flat) == 0:
            worth = len(groups)
        else:
            worth = share * (1 - share) / (variance / (high - low) ** 2) * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, df)) ** 2
            if set(flat) <= {0, 1}:
                worth = min(worth, len(flat))
        a, b = proportion_confint(share * worth, worth, method="wilson")
        return dict(value=value, low=low + a * (high - low), high=low + b * (high - low))
    return None


def by_deal(table):
    """The values of a group as clusters: one value an episode, one cluster a deal."""
    episodes = table.groupby(["deal", "episode"])["value"].mean().reset_index()
    return [g["value"].to_numpy() for _, g in episodes.groupby("deal")]


def check_report(folder, name):
    table = pd.read_csv(folder / f"{name}.csv")
    report = json.loads((folder / f"{name}.report.json").read_text())
    for t in report["tables"]:
        if not t["name"].startswith("scores"):
            continue
        for row in t["rows"]:
            q = row["mean"]
            rows = table[table["name"] == row["score"]]
            for key in ("agent", "model", "seat", "cell"):
                if row.get(key) == "(all)":
                    rows = rows[rows["agent"].isna()]
                elif row.get(key):
                    rows = rows[rows[key] == row[key]]
            if q["low"] is None or len(rows) == 0:
                continue
            want = estimate(q, by_deal(rows), BOUNDS.get(row["score"], (0.0, 1.0)))
            if want is not None:
                same(f"{name}: {t['name']}: {row}", q["method"], q, want)


def check_compare(folder, name, tables):
    found = json.loads((folder / f"{name}.compare.json").read_text())
    rows = next(t for t in found["tables"] if t["name"] == "comparisons")["rows"]
    for row in rows:
        a, b = (side[(side["name"] == row["score"])] for side in (tables(row["a"]), tables(row["b"])))
        if row.get("of"):
            a, b = (s[(s["agent"] == row["of"]) | (s["seat"] == row["of"])] for s in (a, b))
        else:
            a, b = (s if name in ("duel", "long") else s[s["seat"].isna()] for s in (a, b))
        what = f"{name}: {row['score']} {row['of']}"
        q, p, test = row["difference"], row["p"], row["test"]
        per = [s.groupby("deal")["value"].mean() for s in (a, b)]
        single = all(len(s) == s["deal"].nunique() for s in (a, b))
        shares = single and set(a["value"]) | set(b["value"]) <= {0, 1}
        if test.startswith("paired"):
            x, y = (s.to_numpy() for s in per)
            d = x - y
            if shares:
                tally = [[int(((x == 1) & (y == 1)).sum()), int(((x == 1) & (y == 0)).sum())], [int(((x == 0) & (y == 1)).sum()), int(((x == 0) & (y == 0)).sum())]]
                same(what, "McNemar", dict(p=p), dict(p=mcnemar(tally, exact=True).pvalue))
                continue
            if np.ptp(d) > 0:
                low, high = stats.ttest_rel(x, y).confidence_interval(0.95)
                same(what, "paired t interval", q, dict(value=d.mean(), low=low, high=high))
            exact = stats.permutation_test((d,), lambda v, axis: np.abs(v.mean(axis=axis)), permutation_type="samples", alternative="greater", n_resamples=np.inf if len(d) <= 13 else 99999, rng=1).pvalue
            if len(d) <= 13:
                same(what, "sign flips", dict(p=p), dict(p=exact))
            elif abs(p - exact) > 6 * math.sqrt(max(exact, 1e-4) / 9999):
                sys.exit(f"statistics: {what}: P is {p}, and {exact} by SciPy's draws")
            else:
                checked["sign flips, drawn"] = checked.get("sign flips, drawn", 0) + 1
        elif shares:
            k, n = [int(s["value"].sum()) for s in (a, b)], [len(s) for s in (a, b)]
            low, high = confint_proportions_2indep(k[0], n[0], k[1], n[1], compare="diff", method="newcomb")
            same(what, "Newcombe", q, dict(low=low, high=high))
            same(what, "Fisher", dict(p=p), dict(p=stats.fisher_exact([[k[0], n[0] - k[0]], [k[1], n[1] - k[1]]]).pvalue))
        else:
            welch = stats.ttest_ind(*per, equal_var=False)
            low, high = welch.confidence_interval(0.95)
            same(what, "Welch", q | dict(p=p), dict(low=low, high=high, p=welch.pvalue))
    known = [r for r in rows if r["p"] is not None]
    for row, adjusted in zip(known, multipletests([r["p"] for r in known], method="holm")[1]):
        same(f"{name}: {row['score']}", "Holm", {"p": row["adjusted p"]}, {"p": adjusted})


def check_effects(folder, name, factors):
    """Every deal has every combination of levels, so an effect is the mean of what it is in each deal."""
    table = pd.read_csv(folder / f"{name}.csv")
    tags = table["tags"].map(json.loads)
    for factor in factors:
        table[factor] = tags.map(lambda t: t.get(factor))
    rows = next(t for t in json.loads((folder / f"{name}.effects.json").read_text())["tables"] if t["name"] == "effects")["rows"]
    for row in rows:
        if row["difference"]["low"] is None:
            continue
        own = table[(table["name"] == row["score"]) & table[factors].notna().all(axis=1) & table["agent"].notna()]
        if own.empty:
            continue
        means = own.groupby(["deal", "episode", *factors])["value"].mean().groupby(["deal", *factors]).mean().unstack(factors)
        a, b = factors
        high, low = (sorted(own[f].unique()) for f in factors)
        if row["factor"] == a:
            each = means[high[0]].mean(axis=1) - means[high[1]].mean(axis=1)
        elif row["factor"] == b:
            each = means.xs(low[0], axis=1, level=b).mean(axis=1) - means.xs(low[1], axis=1, level=b).mean(axis=1)
        else:
            each = (means[high[0]][low[0]] - means[high[1]][low[0]]) - (means[high[0]][low[1]] - means[high[1]][low[1]])
        test = stats.ttest_1samp(each, 0)
        interval = test.confidence_interval(0.95)
        same(f"{name}: {row}", "effects", row["difference"] | dict(p=row["p"]), dict(value=each.mean(), low=interval.low, high=interval.high, p=test.pvalue))
    for row, adjusted in zip(rows, multipletests([r["p"] for r in rows], method="holm")[1]):
        same(f"{name}: {row['score']}", "Holm", {"p": row["adjusted p"]}, {"p": adjusted})


def main():
    folder = pathlib.Path(sys.argv[1])
    for file in sorted(folder.glob("*.report.json")):
        check_report(folder, file.name.removesuffix(".report.json"))
    for name in ("duel", "long"):
        table = pd.read_csv(folder / f"{name}.csv")
        check_compare(folder, name, lambda agent: table[table["agent"] == agent])
    files = {name: pd.read_csv(folder / f"{name}.csv") for name in ("duel", "other", "one", "two", "long")}
    for name in ("files", "single"):
        check_compare(folder, name, lambda file: files[file.removesuffix(".parley")])
    check_compare(folder, "cells", lambda cell: files["long"][files["long"]["cell"] == cell])
    check_effects(folder, "factors", ["prompt", "size"])
    for method, n in sorted(checked.items()):
        print(f"statistics: {n} times the same to three digits: {method}")
    for needed in ("t", "wilson", "cluster t", "cluster wilson", "paired t interval", "sign flips", "Welch", "McNemar", "Newcombe", "Fisher", "effects", "Holm"):
        if needed not in checked:
            sys.exit(f"statistics: no number was made by {needed}: the studies are too small")


main()
