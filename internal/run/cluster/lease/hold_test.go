package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/limiter"
)

// noted is limits that note their last part.
type noted struct{ limiter.Part }

func (*noted) Demands() map[string]limiter.Demand {
	return map[string]limiter.Demand{"lab": {Waiting: 1}}
}
func (n *noted) Share(parts map[string]limiter.Part) { n.Part = parts["lab"] }

// TestHold: a member that is held sends nothing, whatever it is granted, and keeps its shares.
func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &noted{}
		m, k := NewLimitsMember("w", n), NewLimitsKeeper(1, true)
		grant := func() {
			for _, g := range k.Answer(m.Report()) {
				m.Apply(g)
			}
		}
		grant()
		m.Hold(true)
		grant()
		if n.Until.After(time.Now()) {
			t.Errorf("it may send until %v", n.Until)
		}
		if held := m.Report().Accounts["lab"].Held; held != 1 {
			t.Errorf("its share is %v, want 1", held)
		}
		m.Hold(false)
		if want := time.Now().Add(Lease); !n.Until.Equal(want) || n.Part.Share != 1 {
			t.Errorf("%+v, want all until %v", n.Part, want)
		}
	})
}
