package dispatch

import (
	"context"
	"fmt"
	"testing"

	"parley/internal/ask/batch"
	"parley/llm"
)

// TestSettled: a failure that is recorded settles the lines of its call; one that stops the run does not.
func TestSettled(t *testing.T) {
	t.Parallel()
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		e    llm.Error
		want bool
	}{
		{llm.Error{Kind: llm.KindBadRequest, Status: 400}, true},
		{llm.Error{Kind: llm.KindBadRequest, Status: 422}, true},
		{llm.Error{Kind: llm.KindBadRequest, Status: 404}, false},
		{llm.Error{Kind: llm.KindBadRequest}, false},
		{llm.Error{Kind: llm.KindTransport}, false},
		{llm.Error{Kind: llm.KindTransport, Uncertain: true}, true},
		{llm.Error{Kind: llm.KindServer, Status: 500}, true},
		{llm.Error{Kind: llm.KindServer, Status: 404}, false},
		{llm.Error{Kind: llm.KindQuota, Status: 429}, false},
		{llm.Error{Kind: llm.KindAuth, Status: 401}, false},
		{llm.Error{Kind: llm.KindBudget}, false},
		{llm.Error{Kind: llm.KindBudget, Err: llm.ErrMaxCost}, true},
		{llm.Error{Kind: llm.KindCanceled}, false},
		{*batch.OpenError("b", &llm.Error{Kind: llm.KindBadRequest, Status: 400}), false},
	} {
		if got := settled(t.Context(), &c.e); got != c.want || settled(dead, &c.e) {
			t.Errorf("%+v: %v", c.e, got)
		}
	}
	if !settled(t.Context(), nil) {
		t.Error("an answer is not settled")
	}
}

// TestNoFallbackBesideAnOpenBatch: its answers are paid for, so no other model is asked.
func TestNoFallbackBesideAnOpenBatch(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.Kind{llm.KindBadRequest, llm.KindServer, llm.KindAuth, llm.KindQuota} {
		if e := (&llm.Error{Kind: kind}); fallsBack(batch.OpenError("b", e)) || !fallsBack(fmt.Errorf("%w", e)) {
			t.Error(kind)
		}
	}
}
