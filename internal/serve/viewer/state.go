package viewer

import (
	"os"
	"time"
)

// libraryState tells whether a run file was changed: the times and sizes of the file and of SQLite's log beside it.
type libraryState struct{ file, log fileState }

// libraryStateOf returns the state of a run file.
func libraryStateOf(path string) libraryState {
	return libraryState{stateOf(path), stateOf(path + "-wal")}
}

// Changed returns when the file was last changed.
func (s libraryState) Changed() time.Time {
	if s.log.size > 0 && s.log.at.After(s.file.at) {
		return s.log.at
	}
	return s.file.at
}

// fileState tells whether a file was changed.
type fileState struct {
	at   time.Time
	size int64
}

func stateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{info.ModTime(), info.Size()}
}
