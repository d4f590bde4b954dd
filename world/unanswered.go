package world

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
)

// Unanswered counts calls, and failed calls by kind. The zero value counts none.
type Unanswered struct {
	calls  int
	failed []failures
}

// failures is the number of calls that failed with one kind.
type failures struct {
	kind  llm.Kind
	calls int
}

// Add counts a reply.
func (u *Unanswered) Add(r Reply) {
	u.calls++
	if r.OK() {
		return
	}
	for i := range u.failed {
		if u.failed[i].kind == r.Failed {
			u.failed[i].calls++
			return
		}
	}
	u.failed = append(u.failed, failures{r.Failed, 1})
}

// All reports whether there were calls and all of them failed.
func (u *Unanswered) All() bool {
	failed := 0
	for _, f := range u.failed {
		failed += f.calls
	}
	return u.calls > 0 && failed == u.calls
}

// String lists the failures, the most frequent first: "too_long (10 of 15 calls), invalid (5)". It is empty if no call
// failed.
func (u *Unanswered) String() string {
	sorted := u.sorted()
	parts := make([]string, len(sorted))
	for i, f := range sorted {
		parts[i] = fmt.Sprintf("%s (%d)", f.kind, f.calls)
		if i == 0 {
			parts[i] = fmt.Sprintf("%s (%d of %d calls)", f.kind, f.calls, u.calls)
		}
	}
	return strings.Join(parts, ", ")
}

// sorted lists the failures, the most frequent first. It does not depend on the order in which strands were resumed.
func (u *Unanswered) sorted() []failures {
	return slices.SortedFunc(slices.Values(u.failed), func(a, b failures) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.kind, b.kind))
	})
}

// Because appends the failures, if there are any, to what went wrong.
func (u *Unanswered) Because(what string) string {
	if len(u.failed) == 0 {
		return what
	}
	return what + ": " + u.String()
}

// settle makes the outcome of an episode in which no ask was answered a failed one without scores: nothing was
// measured. The reason names the most frequent failure, unless the world's reason does.
func (u *Unanswered) settle(o *Outcome) {
	if !u.All() {
		return
	}
	o.Scores = nil
	if o.Failed == "" || !strings.Contains(o.Failed, string(u.sorted()[0].kind)) {
		o.Failed = u.Because("no call was answered")
	}
}
