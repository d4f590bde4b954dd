package cli

import (
	"runtime"
	"runtime/debug"
)

// moreBytes is more than what the collector frees while the idle buffer is made.
const moreBytes = 8 << 20

// idle returns the size of a buffer that nobody writes to, so that it takes no memory. It makes the garbage collector run less often
// while little else is in use: frequent collections take a quarter of the time of a run whose calls are answered at once.
//
// The percentage is how much may be allocated before the next collection, of what is in use and of the buffer. The larger the buffer
// and the smaller the percentage, the less memory a large run takes and the more often it is collected. A run of 10,000 conversations
// took 457 MB with a buffer of 256 MB and 25%, and 440 MB and 7% more CPU with these.
func idle() (bytes, percent int) {
	if runtime.GOOS == "windows" { // where the buffer counts against the memory that all processes may have
		return 128 << 20, 50
	}
	return 512 << 20, 11
}

// IdleBuffer returns a buffer to be kept while the program runs, and the percentage for debug.SetGCPercent: see idle. Both are zero if
// the user sets GOGC or GOMEMLIMIT.
func IdleBuffer(env func(string) (string, bool)) (buffer []byte, percent int) {
	if isSet(env, "GOGC") || isSet(env, "GOMEMLIMIT") {
		return nil, 0
	}
	// Go writes zeros into a new object if any part of its memory was used before, which would make all of it resident. So a
	// first object takes the memory that was used and freed, and some more, since the collector may free more meanwhile.
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	size, percent := idle()
	space := make([]byte, min(int(m.HeapIdle), size)+moreBytes)
	buffer = make([]byte, size)
	runtime.KeepAlive(space)
	return buffer, percent
}

// limitMemory makes the garbage collector work harder beyond so much memory, until restore is called.
func limitMemory(s *State, limit int64) (restore func()) {
	was := debug.SetMemoryLimit(memoryLimit(s.Env, limit))
	return func() { debug.SetMemoryLimit(was) }
}

// memoryLimit returns the value for debug.SetMemoryLimit so that the program may use so much memory beside the idle buffer, which
// counts although it takes none. It is negative, which changes nothing, if the user sets GOMEMLIMIT.
func memoryLimit(env func(string) (string, bool), limit int64) int64 {
	switch {
	case isSet(env, "GOMEMLIMIT"):
		return -1
	case isSet(env, "GOGC"):
		return limit
	}
	size, _ := idle()
	return limit + int64(size)
}

// isSet reports whether the user sets a variable of Go's garbage collector.
func isSet(env func(string) (string, bool), name string) bool {
	value, ok := env(name)
	return ok && value != ""
}
