package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestIdleMemory: a server without clients is small, although the garbage collector lets a small heap grow.
func TestIdleMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the race detector takes memory of its own")
	}
	for range 10 {
		p := start(t, "", "sim", "--addr", "127.0.0.1:0")
		p.until(func() bool { return strings.Contains(p.out.String()+p.err.String(), "http://") })
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(status), "RssAnon:")
		kb := 0
		if _, err := fmt.Sscan(after, &kb); err != nil {
			t.Skip("the kernel does not say how much memory a process takes")
		}
		if kb > 100<<10 {
			t.Errorf("a server without clients takes %d KB", kb)
		}
		p.kill()
	}
}
