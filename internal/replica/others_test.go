package replica

import (
	"fmt"
	"testing"
	"testing/synctest"

	"parley/llm"
)

// TestOthers: a server that rests says how many others take its calls.
func TestOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &host{}, &host{}
		var others []int
		s := newSet(t, Config{Rests: func(r Rest) { others = append(others, r.Others) }}, a, b)
		for _, h := range []*host{a, b} {
			h.set(func(h *host) { h.err, h.dead = &llm.Error{Kind: llm.KindTransport}, true })
		}
		if err := ask(t, s, "x"); err == nil {
			t.Fatal("nobody was there, and one answered")
		}
		if fmt.Sprint(others) != "[1 0]" {
			t.Errorf("%v others, want one and then none", others)
		}
	})
}
