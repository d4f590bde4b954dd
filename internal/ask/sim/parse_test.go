package sim

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/llm"
)

func TestParseDelay(t *testing.T) {
	t.Parallel()
	cases := []struct {
		in   string
		mean time.Duration // about
	}{
		{"", 0}, {"0s", 0}, {"1s", time.Second}, {"200ms..2s", 1100 * time.Millisecond},
		{"lognormal:800ms,0.6", 958 * time.Millisecond},
	}
	for _, c := range cases {
		d, err := ParseDelay(c.in)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i := range 4000 {
			if d.Draw(uint64(i)) != d.Draw(uint64(i)) {
				t.Fatal("two draws of one seed")
			}
			sum += float64(d.Draw(uint64(i)))
		}
		if mean := sum / 4000; math.Abs(mean-float64(c.mean)) > 0.08*float64(c.mean) {
			t.Errorf("%q: mean %v, want about %v", c.in, time.Duration(mean), c.mean)
		}
	}
	for _, bad := range []string{"x", "-1s", "2s..1s", "lognormal:1s", "lognormal:1s,x", "lognormal:1s,-1", "lognormal:1s,NaN", "exp:1s", "9999h", "1s..x", ".."} {
		if _, err := ParseDelay(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestParseFaults(t *testing.T) {
	t.Parallel()
	f, err := ParseFaults(" error500=0.01, reset=0.005,")
	if err != nil || f[FaultError500] != 0.01 || f[FaultReset] != 0.005 {
		t.Error(f, err)
	}
	for _, bad := range []string{"error500", "error500=x", "nonsense=0.1", "reset=2", "reset=-1", "reset=NaN"} {
		if _, err := ParseFaults(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	if _, err := New(Config{Faults: Faults{"nonsense": 1}}); err == nil || !strings.Contains(err.Error(), "error500") {
		t.Errorf("the error should name what is allowed: %v", err)
	}
	for _, cfg := range []Config{{MinTokens: 10, MaxTokens: 5}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

func TestBatchFaultsAreDrawn(t *testing.T) {
	t.Parallel()
	b, err := NewBrain(Config{Faults: Faults{FaultLineMissing: 0.5, FaultBatchFails: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	lines, batches := 0, 0
	for i := range uint64(200) {
		if b.LineFault(&Case{Digest: i % 10}) == FaultLineMissing {
			lines++
		}
		if b.BatchFault([]byte{byte(i % 10)}) == FaultBatchFails {
			batches++
		}
	}
	if lines < 60 || lines > 140 || batches < 60 || batches > 140 {
		t.Errorf("%d lines, %d batches of 200", lines, batches)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("Hello, world! 12345  \n\n x", 3)
	f.Add("naïve 日本語 \xff\xfe", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		pieces := splitTokens(s)
		if strings.Join(pieces, "") != s || len(pieces) != CountTokens(s) {
			t.Fatalf("%q: %q", s, pieces)
		}
		cut, k := cutTokens(s, n)
		if k > max(0, n) || !strings.HasPrefix(s, cut) || CountTokens(cut) > k+1 {
			t.Fatalf("%q cut at %d: %q, %d", s, n, cut, k)
		}
		for _, p := range pieces {
			if utf8.ValidString(s) && !utf8.ValidString(p) {
				t.Fatalf("%q: %q is no UTF-8", s, p)
			}
			if id := tokenID(p); id < firstTextID {
				t.Fatal(id)
			}
		}
	})
}

func FuzzAsk(f *testing.F) {
	f.Add("hello", `{"type":"object"}`, 5, "stop")
	f.Fuzz(func(t *testing.T, text, schema string, limit int, stop string) {
		m, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		req := &llm.Request{Model: text, Messages: []llm.Message{llm.User(text)}, MaxTokens: limit, Stop: []string{stop}}
		if schema != "" {
			req.Schema = &llm.Schema{JSON: []byte(schema)}
		}
		r, err := m.Ask(t.Context(), req)
		if err == nil && limit > 0 && r.Usage.Output > max(limit, 1) {
			t.Fatalf("%d tokens, limit %d", r.Usage.Output, limit)
		}
	})
}
