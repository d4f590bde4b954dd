package terminal

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// obeys reports whether a terminal obeys escape codes. A console of Windows must be told to: cmd.exe turns them off for the programs that it
// starts.
func obeys(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return true // a test's
	}
	var mode uint32
	console := windows.Handle(f.Fd())
	return windows.GetConsoleMode(console, &mode) == nil && windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
