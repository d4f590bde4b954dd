//go:build !windows

package terminal

import "io"

// obeys reports whether a terminal obeys escape codes.
func obeys(io.Writer) bool { return true }
