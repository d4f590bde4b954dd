package batch

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/journal"
	"parley/llm"
)

var wireRE = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func question(text string, sample int) *llm.Request {
	return &llm.Request{Model: "lab/any", Sample: sample, Messages: []llm.Message{llm.User(text)}}
}

// TestIDs: ids are valid for every API, differ if the requests do, and can be split again.
func TestIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 500 {
		req := question(strings.Repeat("x", i%7)+fmt.Sprint(i), i)
		repair := question("repaired", i)
		call := CallPart(req)
		for _, c := range []struct {
			attempt *llm.Request
			n       int
		}{{req, 0}, {req, 1}, {req, 54321}, {repair, 0}, {repair, 99999}} {
			key, stem := NewKey(), stemOf(call, c.attempt)
			id := NewID(stem, c.n)
			custom := CustomID(key, id)
			if !wireRE.MatchString(custom) {
				t.Fatalf("%q", custom)
			}
			if back, ok := SplitCustomID(key, custom); !ok || back != id || id.Stem() != stem || id.Ordinal() != c.n || id.Call() != call {
				t.Fatalf("%q: %q %q %d %q", custom, back, id.Stem(), id.Ordinal(), id.Call())
			}
			if _, ok := SplitCustomID(NewKey(), custom); ok || seen[string(id)] {
				t.Fatalf("%q is another's", custom)
			}
			seen[string(id)] = true
		}
	}
	if CallPart(question("a", 0)) == CallPart(question("a", 1)) || CallPart(question("a", 0)) != CallPart(question("a", 0)) {
		t.Error("samples are not distinguished, or one differs from itself")
	}
	for _, odd := range []ID{"", "-", "short", ID(strings.Repeat("y", 33)), ID(strings.Repeat("é", 40))} {
		_, _, _ = odd.Stem(), odd.Ordinal(), odd.Call() // whatever a file has
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one, two := question("one", 0), question("two", 0)
	lines := []string{string(NewID(CallPart(one), 0)), string(NewID(stemOf(CallPart(one), two), 0)), string(NewID(CallPart(two), 0))}
	intended := &journal.Batched{Step: journal.BatchIntended, Key: "k1", At: at, Provider: "lab", Model: "lab/any", Lines: lines, Worst: 25, WorstLine: 10}
	for _, c := range []struct {
		name   string
		events []*journal.Batched
		reply  *llm.Request
		want   []Open
		risk   llm.Money
	}{
		{"nothing", nil, one, nil, 0},
		{"intended", []*journal.Batched{intended}, nil, []Open{{Key: "k1"}}, 25},
		{"a reply settles all lines of its call", []*journal.Batched{intended}, one, []Open{{Key: "k1"}}, 10},
		{"uploaded", []*journal.Batched{intended, {Step: journal.BatchUploaded, Key: "k1", File: "f"}}, two, []Open{{Key: "k1", File: "f"}}, 20},
		{"created", []*journal.Batched{intended, {Step: journal.BatchUploaded, Key: "k1", File: "f"}, {Step: journal.BatchCreated, Key: "k1", Batch: "b"}}, nil, []Open{{Key: "k1", File: "f", ID: "b"}}, 25},
		{"closed", []*journal.Batched{intended, {Step: journal.BatchClosed, Key: "k1"}}, nil, nil, 0},
		{"another is closed", []*journal.Batched{intended, {Step: journal.BatchClosed, Key: "k2"}, {Step: journal.BatchCreated, Key: "k3", Batch: "b"}}, nil, []Open{{Key: "k1"}}, 25},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var l Log
			for _, m := range c.events {
				l.Add(m)
			}
			if c.reply != nil {
				l.Replied(c.reply)
			}
			got, risk := l.Open(), llm.Money(0)
			if len(got) != len(c.want) {
				t.Fatalf("%+v", got)
			}
			for i, o := range got {
				w := c.want[i]
				if o.Key != w.Key || o.File != w.File || o.ID != w.ID || o.Began != at || o.Model != "lab/any" || len(o.Lines) != 3 {
					t.Errorf("%+v", o)
				}
				risk += o.AtRisk()
			}
			if risk != c.risk {
				t.Errorf("%v at risk, want %v", risk, c.risk)
			}
		})
	}
}
