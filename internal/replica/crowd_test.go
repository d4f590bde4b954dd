package replica

import (
	"fmt"
	"sync"
	"testing"

	"parley/llm"
)

// TestCrowd uses a set from many goroutines while servers come and go.
func TestCrowd(t *testing.T) {
	t.Parallel()
	hosts := []*host{{}, {}, {}}
	s := newSet(t, Config{Ends: true}, hosts...)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for n := range 50 {
				session := fmt.Sprint(i, n/5)
				if n == 25 {
					hosts[i%2].set(func(h *host) { h.err = &llm.Error{Kind: llm.KindTransport} })
				}
				if err := ask(t, s, session); err != nil { // the third is always there
					t.Error(err)
				}
				if n%5 == 4 {
					s.Release(session, true)
				}
			}
		})
	}
	wg.Wait()
	for _, st := range s.States() {
		if st.Calls != 0 || st.Sessions != 0 {
			t.Errorf("left over: %+v", st)
		}
	}
}
