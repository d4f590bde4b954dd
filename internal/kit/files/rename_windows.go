package files

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// rename replaces a file. The system refuses that while a reader has the file open, which ours have for a moment: it tries again.
func rename(from, to string) error {
	const tries, pause = 20, 10 * time.Millisecond
	for n := 1; ; n++ {
		err := os.Rename(from, to)
		if n == tries || !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return err
		}
		time.Sleep(pause)
	}
}
