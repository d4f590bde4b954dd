package cli

import "testing"

// TestIdleBuffer: what the user sets is left alone.
func TestIdleBuffer(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"GOGC": 0, "GOMEMLIMIT": 0, "GODEBUG": idleBytes} {
		if got := len(IdleBuffer(func(asked string) (string, bool) { return "50", asked == name })); got != want {
			t.Errorf("%s is set: %d bytes, want %d", name, got, want)
		}
	}
}
