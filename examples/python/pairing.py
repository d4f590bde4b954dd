"""Decides which players of a game talk to each other, round by round, as worlds/secrets."""


class Pairing:
    """Makes the pairs of each round. The player who has opened fewer conversations opens."""

    def __init__(self, method, players, rand):
        self.method, self.rand, self.order, self.round = method, rand, list(range(players)), 0
        self.met = [[0] * players for _ in range(players)]
        self.sat, self.opened = [0] * players, [0] * players
        if method == "swiss":
            self._shuffle()

    def _shuffle(self):
        if len(self.order) > 2:
            self.rand.shuffle(self.order)

    def next(self, points):
        """Return the pairs of the next round, who opens first in each, and the player who sits out, or -1."""
        pairs, sits = self._swiss(points) if self.method == "swiss" else self._circle()
        self.round += 1
        if sits >= 0:
            self.sat[sits] += 1
        out = []
        for a, b in pairs:
            self.met[a][b] += 1
            self.met[b][a] += 1
            if self.opened[b] < self.opened[a]:
                a, b = b, a
            self.opened[a] += 1
            out.append((a, b))
        return out, sits

    def _circle(self):
        count = len(self.order)
        n = count + count % 2
        step = self.round % (n - 1)
        if step == 0 and self.method == "random":
            self._shuffle()

        def at(slot):
            if slot > 0:
                slot = 1 + (slot - 1 + step) % (n - 1)
            return -1 if slot == count else self.order[slot]

        pairs, sits = [], -1
        for i in range(n // 2):
            a, b = at(i), at(n - 1 - i)
            if a < 0:
                sits = b
            elif b < 0:
                sits = a
            elif (i > 0 and i % 2 == 0) or (i == 0 and step % 2 == 1):
                pairs.append((b, a))
            else:
                pairs.append((a, b))
        return pairs, sits

    def _swiss(self, points):
        rank = sorted(self.order, key=lambda i: -points[i])
        sits = -1
        if len(rank) % 2 == 1:
            least = min(self.sat)
            sits = next(a for a in reversed(rank) if self.sat[a] == least)
            rank.remove(sits)
        while self._exchange(rank):
            pass
        return [(rank[i], rank[i + 1]) for i in range(0, len(rank), 2)], sits

    def _exchange(self, rank):
        def cost(i, j):
            return self.met[rank[i]][rank[j]] ** 2

        for i in range(0, len(rank), 2):
            if cost(i, i + 1) == 0:
                continue
            for distance in range(2, len(rank), 2):
                for j in (i + distance, i - distance):
                    if not 0 <= j < len(rank):
                        continue
                    now = cost(i, i + 1) + cost(j, j + 1)
                    if cost(i, j) + cost(i + 1, j + 1) < now:
                        rank[i + 1], rank[j] = rank[j], rank[i + 1]
                        return True
                    if cost(i, j + 1) + cost(i + 1, j) < now:
                        rank[i + 1], rank[j + 1] = rank[j + 1], rank[i + 1]
                        return True
        return False
