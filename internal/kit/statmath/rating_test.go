package statmath

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func rate(t *testing.T, games []Game) *Table {
	t.Helper()
	table, err := Rate(games, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func (t *Table) of(player string) Standing {
	for _, s := range t.Standings {
		if s.Player == player {
			return s
		}
	}
	return Standing{}
}

// difference returns the rating of a less that of b, with its interval. It is unknown if either has no rating or
// they are in different groups.
func (t *Table) difference(a, b string) Quantity {
	for _, f := range t.fits {
		if f == nil {
			continue
		}
		x, y := slices.Index(f.players, a), slices.Index(f.players, b)
		if x < 0 || y < 0 {
			continue
		}
		variance := f.covariance[x][x] + f.covariance[y][y] - 2*f.covariance[x][y]
		return f.quantity(f.strength[x]-f.strength[y], variance, min(f.games[x], f.games[y]))
	}
	return Unknown(0, "bradley-terry")
}

func ratingSame(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		t.Errorf("%s: %.9g, want %.9g", what, got, want)
	}
}

// Games of the American League's eastern division in 1987, from Agresti, Categorical Data
// Analysis (1990), table 10.10. The abilities and standard errors against Baltimore are
// those of Turner and Firth, "Bradley-Terry models in R: the BradleyTerry2 package",
// Journal of Statistical Software 48 (2012), section 2.
func TestBaseballPublished(t *testing.T) {
	t.Parallel()
	teams := []string{"Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"}
	wins := [][]int{
		{0, 7, 9, 7, 7, 9, 11},
		{6, 0, 7, 5, 11, 9, 9},
		{4, 6, 0, 7, 7, 8, 12},
		{6, 8, 6, 0, 6, 7, 10},
		{6, 2, 6, 7, 0, 7, 12},
		{4, 4, 5, 6, 6, 0, 6},
		{2, 4, 1, 3, 1, 7, 0},
	}
	var games []Game
	for i, row := range wins {
		for j, n := range row {
			for range n {
				games = append(games, Game{A: teams[i], B: teams[j], Score: 1})
			}
		}
	}
	table := rate(t, games)
	for _, c := range []struct {
		team        string
		ability, se float64
	}{
		{"Boston", 1.1077, 0.3339}, {"Cleveland", 0.6839, 0.3319}, {"Detroit", 1.4364, 0.3396},
		{"Milwaukee", 1.5814, 0.3433}, {"New York", 1.2476, 0.3359}, {"Toronto", 1.2945, 0.3367},
	} {
		d := table.difference(c.team, "Baltimore")
		ratingSame(t, c.team, d.Value/perUnit, c.ability, 5.1e-5)
		ratingSame(t, c.team+" error", d.Half()/perUnit/1.959964, c.se, 5.1e-5)
	}
	if first := table.Standings[0]; first.Player != "Milwaukee" || first.Rating.N != 78 || first.Score != 50 {
		t.Errorf("first is %+v", first)
	}
}

// TestGolden compares with testdata/golden.json, which testdata/golden.py computes with
// statsmodels.
func TestGolden(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/rating/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			Games   []Game
			Elo, SE []float64
			Between float64 `json:"difference_se"`
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	for i, c := range golden.Cases {
		table := rate(t, c.Games)
		reach := table.fits[0].reach
		for p, elo := range c.Elo {
			s := table.of(fmt.Sprintf("p%d", p))
			ratingSame(t, fmt.Sprintf("case %d, player %d", i, p), s.Rating.Value, elo, 1e-5)
			ratingSame(t, fmt.Sprintf("case %d, player %d, error", i, p), s.Rating.Half()/reach, c.SE[p], 1e-5)
		}
		ratingSame(t, fmt.Sprintf("case %d, difference", i), table.difference("p0", "p1").Half()/reach, c.Between, 1e-5)
	}
}

func games(list ...string) (gs []Game) {
	for _, g := range list {
		switch a, b, _ := strings.Cut(g, " "); {
		case strings.HasPrefix(b, "= "):
			gs = append(gs, Game{A: a, B: b[2:], Score: 0.5})
		default:
			gs = append(gs, Game{A: a, B: b[2:], Score: 1})
		}
	}
	return gs
}

// TestUnratedPlayers checks who gets no rating, and that the reason is given.
func TestUnratedPlayers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		games []Game
		want  string // group and player, + where there is a rating
	}{
		{"nobody", nil, ""},
		{"one game", games("a > b"), "1a 2b"},
		{"a tie", games("a = b"), "1a+ 1b+"},
		{"undefeated", games("a > b", "b > c", "c > b", "a > c"), "1a 2b+ 2c+"},
		{"always lost", games("a > b", "b > a", "a > c"), "1a+ 1b+ 2c"},
		{"undefeated, but tied once", games("a > b", "a = b", "b > c", "c > a"), "1a+ 1b+ 1c+"},
		{"between two", games("a > b", "b > c"), "1a 2b 3c"},
		{"a circle", games("a > b", "b > c", "c > a"), "1a+ 1b+ 1c+"},
		{"one group above another", games("a > b", "b > a", "c > d", "d > c", "a > d"), "1a+ 1b+ 2c+ 2d+"},
	} {
		table := rate(t, c.games)
		var got []string
		for _, s := range table.Standings {
			mark := ""
			if s.Rating.Known() {
				mark = "+"
			}
			if (s.Why == "") != s.Rating.Known() || s.Rating.N == 0 {
				t.Errorf("%s: %+v", c.name, s)
			}
			got = append(got, fmt.Sprint(s.Group, s.Player, mark))
		}
		slices.Sort(got) // by group and name, whatever the ratings are
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// TestGroupsAreNotCompared checks that the difference between groups that never met is unknown.
func TestGroupsAreNotCompared(t *testing.T) {
	t.Parallel()
	table := rate(t, games("a > b", "b > a", "c > d", "d > c"))
	for _, s := range table.Standings {
		if s.Rating.Value != 1500 || s.Why != "" {
			t.Errorf("%+v", s)
		}
	}
	if d := table.difference("a", "b"); !d.Known() {
		t.Errorf("a and b met: %v", d)
	}
	for _, d := range []Quantity{table.difference("a", "c"), table.difference("a", "nobody")} {
		if d.Known() || d.Holds(math.NaN()) {
			t.Errorf("cannot be compared: %v", d)
		}
	}
}

// TestExpectedScores checks the definition of the ratings.
func TestExpectedScores(t *testing.T) {
	t.Parallel()
	table := rate(t, games("a > b", "a > b", "a > b", "a = b", "b > a"))
	d := table.difference("a", "b")
	ratingSame(t, "expected score", expectedScore(d.Value/perUnit, 0), 0.7, 1e-9) // 3.5 of 5
	if !d.Holds(d.Value) || math.IsInf(d.Half(), 0) {
		t.Errorf("%v", d)
	}
	ratingSame(t, "difference", d.Value, 400*math.Log10(0.7/0.3), 1e-6)
	ratingSame(t, "difference of the standings", table.of("a").Rating.Value-table.of("b").Rating.Value, d.Value, 1e-6)
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		games      []Game
		confidence float64
		want       string
	}{
		{[]Game{{A: "a", B: "b", Score: 2}}, 0.95, `rating: game 0: "a" against "b": score 2`},
		{[]Game{{A: "a", B: "b", Score: math.NaN()}}, 0.95, "score NaN"},
		{[]Game{{A: "a", B: "b"}, {A: "a", B: "a"}}, 0.95, `game 1: "a" against itself`},
		{[]Game{{A: "", B: "b"}}, 0.95, "has no name"},
		{nil, 95, "confidence 95"},
	} {
		if _, err := Rate(c.games, c.confidence); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestAnyGames checks what holds for any games: no panic, no NaN except for unknown ratings, and a standing for
// every player.
func TestAnyGames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var gs []Game
		players := map[string]bool{}
		for range rapid.IntRange(0, 25).Draw(t, "games") {
			i, by := rapid.IntRange(0, 5).Draw(t, "a"), rapid.IntRange(1, 5).Draw(t, "by")
			g := Game{A: string(rune('a' + i)), B: string(rune('a' + (i+by)%6)), Score: rapid.SampledFrom([]float64{0, 0, 0, 1, 1, 0.5, 0.25, 1e-300}).Draw(t, "score")}
			if rapid.Bool().Draw(t, "dealt") {
				g.Deal = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "deal")
			}
			players[g.A], players[g.B] = true, true
			gs = append(gs, g)
		}
		table, err := Rate(gs, 0.95)
		if err != nil || len(table.Standings) != len(players) {
			t.Fatalf("%v, %v", table, err)
		}
		for _, s := range table.Standings {
			if math.IsInf(s.Rating.Value, 0) || math.IsNaN(s.Rating.Low) || s.Rating.Low > s.Rating.High || s.Rating.Known() != (s.Why == "") {
				t.Fatalf("%+v", s)
			}
			if _, err := json.Marshal(s); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// season plays rounds of games between four players of known strengths. The games of a deal share
// their luck; ties is the share of ties.
func season(r *rand.Rand, rounds int, luck, ties float64) (gs []Game) {
	for round := range rounds {
		shared := luck * r.NormFloat64()
		for i := range 4 {
			for j := range i {
				d := 0.4*float64(i-j) + shared
				g := Game{A: string(rune('a' + i)), B: string(rune('a' + j)), Score: 0}
				if luck > 0 {
					g.Deal = fmt.Sprint(round)
				}
				switch p, x := expectedScore(d, 0), r.Float64(); {
				case x < p-ties/2:
					g.Score = 1
				case x < p+ties/2:
					g.Score = 0.5
				}
				gs = append(gs, g)
			}
		}
	}
	return gs
}

// TestRatingCoverage plays seasons with a known truth: 95% intervals must hold it in 93
// to 97% of them.
func TestRatingCoverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		rounds     int
		luck, ties float64
	}{
		{"wins and losses", 15, 0, 0},
		{"many ties", 15, 0, 0.3},
		{"games of a deal", 60, 0.8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const trials = 1000
			// Shared luck moves the expected scores towards a half. A very long season finds the
			// true difference.
			truth := 0.8 * perUnit
			if c.luck > 0 {
				long := rate(t, season(rand.New(rand.NewPCG(1, 2)), 20_000, c.luck, c.ties))
				truth = long.difference("c", "a").Value
			}
			r := rand.New(rand.NewPCG(8, 0))
			held := 0.0
			for range trials {
				if rate(t, season(r, c.rounds, c.luck, c.ties)).difference("c", "a").Holds(truth) {
					held++
				}
			}
			if held /= trials; held < 0.93 || held > 0.97 {
				t.Errorf("95%% intervals hold the truth in %.1f%%", 100*held)
			} else {
				t.Logf("%.1f%%", 100*held)
			}
		})
	}
}

// TestDealsAreNotGames checks that games that share their luck give wider intervals than independent ones.
func TestDealsAreNotGames(t *testing.T) {
	t.Parallel()
	gs := season(rand.New(rand.NewPCG(4, 0)), 100, 2, 0)
	dealt := rate(t, gs).of("d").Rating
	for i := range gs {
		gs[i].Deal = ""
	}
	alone := rate(t, gs).of("d").Rating
	if dealt.Half() < 1.2*alone.Half() || dealt.Value != alone.Value {
		t.Errorf("with deals %v, without %v", dealt, alone)
	}
	for i := range gs {
		gs[i].Deal = "the only one"
	}
	if one := rate(t, gs).of("d").Rating; one.Value != alone.Value || !math.IsInf(one.Half(), 1) {
		t.Errorf("one deal shows nothing about others: %v", one)
	}
}

// TestLongChain checks a chain where every player met only two neighbours. MM alone would take very long.
func TestLongChain(t *testing.T) {
	t.Parallel()
	var gs []Game
	for i := range 99 {
		a, b := fmt.Sprintf("p%02d", i), fmt.Sprintf("p%02d", i+1)
		for k := range 10 {
			gs = append(gs, Game{A: a, B: b, Score: float64(min(1, k/(4+i%3)))})
		}
	}
	table := rate(t, gs)
	if len(table.Standings) != 100 || table.Standings[99].Group != 1 {
		t.Fatalf("%+v", table.Standings)
	}
	// In a chain, only their own games decide how far apart neighbours are.
	for i, wins := range []float64{6, 5, 4} {
		d := table.difference(fmt.Sprintf("p%02d", i), fmt.Sprintf("p%02d", i+1))
		ratingSame(t, "neighbours", d.Value, 400*math.Log10(wins/(10-wins)), 1e-6)
	}
}

// TestTooOneSided checks a score that is barely above 0: it connects the players, but does not
// determine how far apart they are.
func TestTooOneSided(t *testing.T) {
	t.Parallel()
	table := rate(t, []Game{{A: "a", B: "b", Score: 1e-300}})
	if s := table.Standings[0]; s.Rating.Known() || !strings.Contains(s.Why, "one-sided") {
		t.Errorf("%+v", s)
	}
}
