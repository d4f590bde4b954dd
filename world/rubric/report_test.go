package rubric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/kit/statmath"
	"parley/world"
	"parley/world/exhibit"
)

// TestManyTests: judges without a bias show no sign of one, however many there are. Each two of them are compared.
func TestManyTests(t *testing.T) {
	t.Parallel()
	var e Report
	questions := map[string]Question{"good": {Ask: "?", Scale: []int{0, 9}}}
	const judges = 10
	r := rand.New(rand.NewPCG(5, 4))
	for n := range 50 {
		var ratings []Rating
		length := r.IntN(900)
		for j := range judges {
			ratings = append(ratings, Rating{Question: "good", Judge: fmt.Sprintf("j%02d", j), Value: float64(r.IntN(10)), Length: length})
		}
		if n > 0 { // one judge has nothing to say about the first episode
			ratings = append(ratings, Rating{Question: "good", Judge: "same as j00", Value: ratings[0].Value, Length: length})
		}
		e.Add(world.Unit{}, n, questions, ratings)
	}
	single, signs, pairs := 0, 0, 0
	var page exhibit.Page
	e.AddTo(&page)
	for _, x := range page.All {
		for _, row := range x.Show.(exhibit.Grid).Rows {
			switch x.Name {
			case "length-bias":
				if row[4].(float64) > 0 || row[5].(float64) < 0 {
					single++
				}
				if row[7] != "no" {
					signs++
				}
			case "agreement-of-pairs":
				pairs++
				if row[1] == "j00" && row[2] == "same as j00" && (row[3] != 49 || row[4] != 1.0) {
					t.Errorf("judges that always agree: %v", row)
				}
			}
		}
	}
	if single == 0 || signs != 0 || pairs != judges*(judges+1)/2 {
		t.Errorf("%d intervals leave out 0, %d signs of bias, %d pairs", single, signs, pairs)
	}
}

// TestFamilies: many choices, of which each has a test, do not hide the bias on a scale.
func TestFamilies(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	scale, pick := &judged{}, &judged{listed: 100}
	for n := range 100 {
		length := float64(n)
		scale.lengths, scale.values = append(scale.lengths, length), append(scale.values, float64(r.IntN(100)+n/5))
		pick.lengths, pick.values = append(pick.lengths, length), append(pick.values, float64(r.IntN(20)))
		pick.first.Add(world.Unit{}, float64(n%2))
		scale.units, pick.units = append(scale.units, world.Unit{}), append(pick.units, world.Unit{})
	}
	want := statmath.Unrelated(scale.lengths, scale.values, nil)
	var tests biasTests
	tests.add("good", &question{Question: Question{Scale: []int{0, 200}}, rating: map[string]*judged{"j": scale}})
	tests.add("pick", &question{Question: Question{Choices: make([]string, 20)}, rating: map[string]*judged{"j": pick}})
	length, position := tests.grids()
	if len(length.Rows) != 21 || want < 0.0025 || want > 0.05 {
		t.Fatalf("%d tests of length, p of the scale %v", len(length.Rows), want)
	}
	if row := length.Rows[0]; row[0] != "good" || row[6] != want || row[7] != "yes" {
		t.Errorf("scale: %v, want p %v", row, want)
	}
	if row := length.Rows[1]; row[6] == statmath.Unrelated(pick.lengths, chose(pick.values, 0), nil) {
		t.Errorf("choices are not corrected: %v", row)
	}
	if row := position.Rows[0]; row[5] != differs(&pick.first, 0.05) {
		t.Errorf("position: %v", row)
	}
}

// TestDiffers: the p-value is where the interval of a mean begins to leave out a value.
func TestDiffers(t *testing.T) {
	t.Parallel()
	s := &world.Sample{Bounds: world.Share()}
	for i := range 40 {
		s.Add(world.Unit{}, float64(i%4/3))
	}
	p := differs(s, 0.4)
	if q := s.Estimate(1 - p); !(p > 0.01 && p < 0.2) || math.Abs(q.High-0.4) > 1e-4 {
		t.Errorf("p %v, interval %+v", p, q)
	}
	if p := differs(s, 0.25); p < 1-1e-4 {
		t.Errorf("the mean itself: p %v", p)
	}
	if p := differs(&world.Sample{}, 0.5); !math.IsNaN(p) {
		t.Errorf("nothing: p %v", p)
	}
	if p := statmath.Unrelated(nil, nil, nil); !math.IsNaN(p) {
		t.Errorf("nothing: p %v", p)
	}
}
