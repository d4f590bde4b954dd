package envhttp

import (
	"fmt"
	"testing"
	"time"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// TestWrongForm checks that nobody waits for hosts that answer in a wrong form: they answer the same later.
func TestWrongForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  llm.Kind
		hosts int
		tries int // of each lease
	}{{llm.KindInvalid, 1, 1}, {llm.KindMalformed, 1, 3}, {llm.KindInvalid, 2, 6}, {llm.KindMalformed, 2, 6}} {
		hosts := []*fake{newFake("a"), newFake("b")}[:c.hosts]
		for _, h := range hosts {
			h.set(&llm.Error{Kind: c.kind}, false)
		}
		in(t, Config{PerHost: 50}, hosts, func(t *testing.T, p *envPool) {
			began := time.Now()
			for i := range 20 {
				_, err := p.Lease(t.Context(), i, fmt.Sprint(i), rules.Opening{Env: "e"})
				if e := llm.AsError(err); e == nil || e.Kind != c.kind {
					t.Fatalf("%+v: %v", c, err)
				}
			}
			failed := 0
			for _, s := range p.Stats() {
				failed += s.Failed
			}
			if took, limit := time.Since(began), time.Duration(20*(c.tries-1))*time.Second; failed != 20*c.tries || took > limit {
				t.Errorf("%+v: %d failures in %s, want %d in at most %s", c, failed, took, 20*c.tries, limit)
			}
		})
	}
}
