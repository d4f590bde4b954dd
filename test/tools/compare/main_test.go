package main

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want sample
		err  error
	}{
		{"goos: linux\nBenchmarkAll/budget-2 \t 2000\t  4235 ns/op\t 236136 calls/s\t 911 B/op\t 10 allocs/op\nPASS\n", sample{time: 4235, bytes: 911}, nil},
		{"BenchmarkAsk/openai-2 2000 158425.5 ns/op 62.46 cpu-µs/op 10097 B/op 89 allocs/op", sample{time: 158425.5, bytes: 10097}, nil},
		{"PASS\n", sample{}, errNone},
		{"BenchmarkX-2 1", sample{}, errNone},
		{"BenchmarkX-2 1 2 ns/op 3", sample{time: 2}, errNone},
	} {
		if got, err := parse(c.text); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q is %+v, %v, want %+v, %v", c.text, got, err, c.want, c.err)
		}
	}
	if _, err := parse("BenchmarkX-2 1 many ns/op 3 B/op"); err == nil || !strings.Contains(err.Error(), "many ns/op") {
		t.Error(err)
	}
}

func TestNoCommit(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := compare(t.Context(), &out, "no-such-commit"); err != nil || out.String() != "compare: skipped: there is no commit no-such-commit here\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
