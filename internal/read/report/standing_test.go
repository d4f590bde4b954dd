package report

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestStanding checks what the sentence says about agents that differ, that do not, and that cannot be compared.
func TestStanding(t *testing.T) {
	t.Parallel()
	// three returns deals of three agents, each pair both ways round. a is better by gain, and c worse by as much.
	three := func(deals int, gain float64) (out []episode) {
		r := rand.New(rand.NewPCG(3, 3))
		value := map[string]float64{"a": gain, "b": 0, "c": -gain}
		for d := range deals {
			luck := r.NormFloat64()
			score := func(agent string) float64 { return luck + value[agent] + 0.3*r.NormFloat64() }
			for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}, {"a", "c"}, {"c", "a"}, {"b", "c"}, {"c", "b"}} {
				out = append(out, episode{pair[0] + pair[1], d, pair[0], pair[1], score(pair[0]), score(pair[1])})
			}
		}
		return out
	}
	// b is better wherever both played, and a has more alone; c played too little to be compared.
	alone, little := duels(rand.New(rand.NewPCG(1, 3)), 30, -1), duels(rand.New(rand.NewPCG(1, 4)), 30, 1)
	for d := range 30 {
		alone = append(alone, episode{"alone", 100 + d, "a", "a", 20, 20})
	}
	little = append(little, episode{"little", 200, "c", "c", -10, -10})
	number := `-?[\d.]+ \[-?[\d.]+, -?[\d.]+\]`
	for name, c := range map[string]struct {
		all  []episode
		want string
	}{
		"two":          {duels(rand.New(rand.NewPCG(1, 1)), 40, 0.2), `^a has the highest points: 0\.[12]\d* \[0\.\d+, 0\.\d+\] above b, p < 0\.001\.$`},
		"equal":        {duels(rand.New(rand.NewPCG(1, 2)), 40, 0), `^No difference in points between [ab] and [ab] is shown yet: ` + number + ` so far, p = [\d.]+(; if the difference is as large as it looks, about [\d,]+ more deals \([\d,]+ episodes\) would show it four times in five)?\.$`},
		"three":        {three(30, 1), `^a has the highest points: ` + number + ` above b, p < 0\.001 \(adjusted for 3 pairs of agents\); a is above the other one\.$`},
		"equal of six": {three(30, 0), `^No difference in points between [abc] and [abc] is shown yet: ` + number + ` so far, p = [\d.]+ \(adjusted for 3 pairs of agents\)`},
		"one deal":     {duels(rand.New(rand.NewPCG(1, 1)), 1, 5), `^a has the highest points, [-\d.]+; 1 deal is too few to compare it with b\.$`},
		"more alone":   {alone, `^a has the highest mean of points, but where both played the same deals the difference from b is -[\d.]+ \[-[\d.]+, -0?[\d.]+\], p < 0\.001; the means are over all episodes`},
		"too little":   {little, `^a has the highest points: ` + number + ` above b, p [<=] 0\.\d+ \(adjusted for 3 pairs of agents\); no difference from the others is shown yet`},
		"one agent":    {[]episode{{"x", 0, "a", "a", 1, 2}, {"x", 1, "a", "a", 2, 2}}, `^$`},
		"nothing":      {nil, `^$`},
	} {
		if got := standing(run(t, 1, c.all), "points"); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: %q\nwant %s", name, got, c.want)
		}
	}
	if got := standing(run(t, 1, duels(rand.New(rand.NewPCG(1, 1)), 40, 0.2)), "beauty"); got != "" {
		t.Errorf("of a score that nobody has: %q", got)
	}
}

// TestStandingIsCareful plays many runs of four equal agents: the one that happens to be the highest is rarely said to be above the next.
func TestStandingIsCareful(t *testing.T) {
	t.Parallel()
	agents, said := []string{"a", "b", "c", "d"}, 0
	const runs = 100
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 5))
		var all []episode
		for d := range 12 {
			luck := r.NormFloat64()
			for i, a := range agents {
				for _, b := range agents[i+1:] {
					all = append(all, episode{a + b, d, a, b, luck + r.NormFloat64(), luck + r.NormFloat64()})
				}
			}
		}
		if regexp.MustCompile("has the highest").MatchString(standing(run(t, seed, all), "points")) {
			said++
		}
	}
	if said > 12 { // about five are expected at most; of a binomial distribution, more than twelve are one in a thousand
		t.Errorf("%d of %s", said, fmt.Sprint(runs))
	}
}

// TestMainResult: the main score has a mean for each agent, the highest first, and every score one of all together.
func TestMainResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all       []episode
		main, any string
	}{
		{[]episode{{"x", 0, "a", "b", 1, 3}, {"x", 1, "b", "a", 5, 1}}, "points b 4 points a 1", "points  2.5 wit  2.5"},
		{[]episode{{"x", 0, "a", "a", 1, 3}}, "points a 2", "points a 2 wit a 2"},
		{[]episode{{"x", 0, "", "", 1, 3}}, "points  2", "points  2 wit  2"},
		{nil, "", ""},
	} {
		main, all := MainResult(run(t, 1, c.all, "wit"))
		for want, got := range map[string][]Mean{c.main: main, c.any: all} {
			var words []string
			for _, m := range got {
				words = append(words, fmt.Sprint(m.Score, " ", m.Agent, " ", m.Value))
			}
			if is := strings.Join(words, " "); is != want {
				t.Errorf("%+v: %q, want %q", c.all, is, want)
			}
		}
	}
}
