package world_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/kit/statmath"
	"parley/world"
)

// TestBoundsHold: an interval is cut to what a value can be, it keeps every true value that
// it held, and what is unknown stays unknown.
func TestBoundsHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := world.Bounds{Low: rapid.Float64Range(-9, 9).Draw(t, "low"), High: 0}
		b.High = b.Low + rapid.Float64Range(0.1, 9).Draw(t, "wide")
		value := rapid.Float64Range(b.Low, b.High).Draw(t, "value")
		i := statmath.Interval{Low: value - rapid.Float64Range(0, 20).Draw(t, "below"), High: value + rapid.Float64Range(0, 20).Draw(t, "above")}
		got := b.Hold(value, i)
		if got.Low < b.Low || got.High > b.High || !got.Holds(value) || got.Low < i.Low || got.High > i.High {
			t.Fatalf("%v of %v around %v in %v", got, i, value, b)
		}
		truth := rapid.Float64Range(b.Low, b.High).Draw(t, "truth")
		if i.Holds(truth) != got.Holds(truth) {
			t.Fatalf("%v in %v: %v held it, %v does not", truth, b, i, got)
		}
	})
	all := statmath.Interval{Low: math.Inf(-1), High: math.Inf(1)}
	ten := world.Bounds{Low: 0, High: 10}
	for _, c := range []struct {
		b       world.Bounds
		value   float64
		i, want statmath.Interval
	}{
		{ten, 5, all, all},
		{ten, 11, statmath.Interval{Low: -1, High: 12}, statmath.Interval{Low: -1, High: 12}},
		{world.Bounds{}, 5, statmath.Interval{Low: -1, High: 12}, statmath.Interval{Low: -1, High: 12}},
		{world.AtLeast0(), 5, statmath.Interval{Low: -1, High: 12}, statmath.Interval{Low: 0, High: 12}},
		{ten.Difference(), 9, statmath.Interval{Low: -1, High: 12}, statmath.Interval{Low: -1, High: 10}},
		{world.AtLeast0().Difference(), 9, statmath.Interval{Low: -1, High: 12}, statmath.Interval{Low: -1, High: 12}},
		{ten.Join(world.Bounds{Low: -1, High: 2}), 9, statmath.Interval{Low: -2, High: 12}, statmath.Interval{Low: -1, High: 10}},
		{ten.Join(world.Bounds{}), 9, statmath.Interval{Low: -2, High: 12}, statmath.Interval{Low: -2, High: 12}},
	} {
		if got := c.b.Hold(c.value, c.i); got != c.want {
			t.Errorf("%v around %v in %v: %v, want %v", c.i, c.value, c.b, got, c.want)
		}
	}
}

// TestSampleWithin: no interval of a mean goes beyond what was declared, however wide it is.
func TestSampleWithin(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	cut := 0
	for range 200 {
		free, bound := &world.Sample{}, &world.Sample{Bounds: world.Bounds{Low: 0, High: 1}}
		for range 3 {
			x := 1 - r.Float64()*0.2
			free.Add(world.Unit{}, x)
			bound.Add(world.Unit{}, x)
		}
		f, b := free.Estimate(0.95), bound.Estimate(0.95)
		if b.High > 1 || b.Low < 0 || b.Value != f.Value {
			t.Fatalf("%v, and without bounds %v", b, f)
		}
		if f.High > 1 {
			cut++
		}
	}
	if cut == 0 {
		t.Error("nothing had to be cut: the test checks nothing")
	}
}

// TestMeasureJSON: what is written is read again, and a bound that is left out is none.
func TestMeasureJSON(t *testing.T) {
	t.Parallel()
	for _, b := range []world.Bounds{{}, world.Share(), world.AtLeast0(), world.Anything(), world.Share().Difference(), {Low: -3, High: 0}, {Low: math.Inf(-1), High: 2}, {Low: 5, High: 5}} {
		m := world.Measure{Name: "points", Seats: []string{"a"}, Rivals: true, Bounds: b}
		text, err := json.Marshal(m)
		var got world.Measure
		if err = errors.Join(err, json.Unmarshal(text, &got)); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, m)
		}
	}
	var low world.Measure
	if err := json.Unmarshal([]byte(`{"name":"x","low":1}`), &low); err != nil || low.Bounds != (world.Bounds{Low: 1, High: math.Inf(1)}) {
		t.Errorf("%+v, %v", low, err)
	}
}
