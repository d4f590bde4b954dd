"""Writes golden.json: games, and the ratings that statsmodels computes from them.

    python golden.py > golden.json

Ratings are the coefficients of a binomial regression of scores on who played whom, with
plain and with cluster-robust covariance, put on the scale of Elo around their mean. The
tests read only the JSON.
"""
import json
import warnings

import numpy as np
import statsmodels
import statsmodels.api as sm

warnings.filterwarnings("ignore")  # a tie is half a success, which statsmodels remarks upon
rng = np.random.default_rng(20260116)
ELO = 400 / np.log(10)


def play(players, rounds, ties, deals):
    strength = rng.normal(0, 0.7, players)
    games = []
    for deal in range(rounds):
        luck = rng.normal(0, 1) if deals else 0
        for i in range(players):
            for j in range(i + 1, players):
                p = 1 / (1 + np.exp(strength[j] - strength[i] + luck))
                score = 0.5 if rng.random() < ties else float(rng.random() < p)
                games.append(dict(a=f"p{i}", b=f"p{j}", score=score, deal=f"d{deal}" if deals else ""))
    return games


def fit(players, games, robust):
    x = np.zeros((len(games), players))
    for row, g in enumerate(games):
        x[row, int(g["a"][1:])] = 1
        x[row, int(g["b"][1:])] = -1
    y = np.array([g["score"] for g in games])
    model = sm.GLM(y, x[:, 1:], family=sm.families.Binomial())  # player 0 is the reference
    if robust:
        labels = np.unique([g["deal"] or str(i) for i, g in enumerate(games)], return_inverse=True)[1]
        r = model.fit(tol=1e-13, maxiter=200, cov_type="cluster", cov_kwds=dict(groups=labels, use_correction=False))
        units = len(np.unique(labels))
        scale = units / (units - 1)
    else:
        r = model.fit(tol=1e-13, maxiter=200)
        scale = 1
    beta = np.concatenate([[0], r.params])
    cov = np.zeros((players, players))
    cov[1:, 1:] = r.cov_params() * scale
    centre = np.eye(players) - 1 / players
    elo = 1500 + ELO * (centre @ beta)
    cov = ELO**2 * centre @ cov @ centre.T
    return [float(e) for e in elo], [float(s) for s in np.sqrt(np.diag(cov))], float(np.sqrt(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]))


cases = []
for players, rounds, ties, deals in [(2, 40, 0, False), (5, 30, 0, False), (4, 60, 0.3, False), (4, 80, 0.1, True)]:
    games = play(players, rounds, ties, deals)
    elo, se, difference = fit(players, games, ties > 0 or deals)
    cases.append(dict(games=games, elo=elo, se=se, difference_se=difference))
print(json.dumps(dict(made_with=dict(numpy=np.__version__, statsmodels=statsmodels.__version__), cases=cases)).replace("}, {\"a\"", "},\n{\"a\""))
