package world

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
)

// Unanswered counts calls by whether they were answered, and by how they failed. The zero
// value counts none.
type Unanswered struct {
	calls  int
	failed []failures
}

// failures is how many calls failed in one way.
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

// All says whether there were calls and each of them failed.
func (u *Unanswered) All() bool {
	failed := 0
	for _, f := range u.failed {
		failed += f.calls
	}
	return u.calls > 0 && failed == u.calls
}

// String lists how calls failed, the commonest first: "too_long (10 of 15 calls), invalid (5)".
// It is empty where none failed.
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

// sorted lists the failures, the commonest first. The order in which strands were resumed makes
// no difference.
func (u *Unanswered) sorted() []failures {
	return slices.SortedFunc(slices.Values(u.failed), func(a, b failures) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.kind, b.kind))
	})
}

// Because adds to what went wrong how calls failed, where some did.
func (u *Unanswered) Because(what string) string {
	if len(u.failed) == 0 {
		return what
	}
	return what + ": " + u.String()
}

// settle makes an outcome of an episode in which no ask was answered a failed one without
// scores: nothing was measured. The reason names the commonest failure, unless the world's
// own does.
func (u *Unanswered) settle(o Outcome) Outcome {
	if !u.All() {
		return o
	}
	o.Scores = nil
	if o.Failed == "" || !strings.Contains(o.Failed, string(u.sorted()[0].kind)) {
		o.Failed = u.Because("no call was answered")
	}
	return o
}
