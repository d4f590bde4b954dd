package cli

import "testing"

// TestIdleBuffer: what the user sets is left alone.
func TestIdleBuffer(t *testing.T) {
	t.Parallel()
	size, percent := idle()
	for name, want := range map[string][2]int{"GOGC": {}, "GOMEMLIMIT": {}, "GODEBUG": {size, percent}} {
		buffer, percent := IdleBuffer(func(asked string) (string, bool) { return "50", asked == name })
		if got := [2]int{len(buffer), percent}; got != want {
			t.Errorf("%s is set: %d bytes and percent, want %d", name, got, want)
		}
	}
}

// TestMemoryLimit: the idle buffer does not use up the memory of a verb with a limit, and what the user sets is left alone.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	size, _ := idle()
	for name, want := range map[string]int64{"GOGC": viewMemory, "GOMEMLIMIT": -1, "GODEBUG": viewMemory + int64(size)} {
		if got := memoryLimit(func(asked string) (string, bool) { return "50", asked == name }, viewMemory); got != want {
			t.Errorf("%s is set: the limit is %d, want %d", name, got, want)
		}
	}
}
