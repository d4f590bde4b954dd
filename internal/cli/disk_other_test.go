//go:build !linux

package cli

import "testing"

func child() int { return ExitBroken }

func TestDisk(t *testing.T) {
	t.Skip("how to fill a disk and lock a folder without harm is known for Linux only")
}
