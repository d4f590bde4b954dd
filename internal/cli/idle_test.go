package cli

import "testing"

// TestIdleBuffer: what the user sets is left alone.
func TestIdleBuffer(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]int{"GOGC": {}, "GOMEMLIMIT": {}, "GODEBUG": {idleBytes, idlePercent}} {
		buffer, percent := IdleBuffer(func(asked string) (string, bool) { return "50", asked == name })
		if got := [2]int{len(buffer), percent}; got != want {
			t.Errorf("%s is set: %d bytes and percent, want %d", name, got, want)
		}
	}
}
