package main

import (
	"strings"
	"testing"

	"parley/internal/ask/sim"
)

// TestSoakFaults: the faults of a soak are those that the simulated server has. A soak itself runs at night only.
func TestSoakFaults(t *testing.T) {
	t.Parallel()
	if _, err := sim.ParseFaults(soakFaults); err != nil {
		t.Error(err)
	}
}

func TestGrown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []float64
		want   string
	}{
		{"goroutines", []float64{50, 4, 4, 4, 5, 4, 4}, ""},
		{"goroutines", []float64{4, 4, 5, 5, 6, 6, 7}, "goroutines grew from 5.0 to 7.0 in 6 rounds"},
		{"heap, MB", []float64{10, 12, 11, 13}, ""},
		{"heap, MB", []float64{10, 20, 30, 40}, "heap, MB grew from 20.0 to 40.0"},
		{"the server's descriptors", []float64{9, 100, 10, 400}, "the server's descriptors grew"},
		{"descriptors", []float64{9}, ""},
	} {
		var samples []map[string]float64
		for _, v := range c.values {
			samples = append(samples, map[string]float64{c.name: v})
		}
		if err := grown(samples); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.name, c.values, err, c.want)
		}
	}
}
