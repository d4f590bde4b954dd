//go:build !linux

package cli

import (
	"testing"

	"parley/internal/cli/exit"
)

func child() int { return exit.Broken }

func TestDisk(t *testing.T) {
	t.Skip("how to fill a disk and lock a folder without harm is known for Linux only")
}
