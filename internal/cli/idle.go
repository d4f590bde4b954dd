package cli

import (
	"runtime"
	"runtime/debug"
)

const (
	// idleBytes is the size of a buffer that nobody writes to, so that it takes no memory. It makes the garbage collector run
	// less often while little else is in use: frequent collections take a quarter of the time of a run whose calls are
	// answered at once.
	idleBytes = 512 << 20
	// moreBytes is more than what the collector frees while the buffer is made.
	moreBytes = 8 << 20
	// idlePercent is how much may be allocated before the next collection, of what is in use and of the buffer. The larger the
	// buffer and the smaller the percentage, the less memory a large run takes and the more often it is collected. A run of 10,000
	// conversations takes 469 MB with half of the buffer and 25, and 450 MB with these.
	idlePercent = 11
)

// IdleBuffer returns a buffer to be kept while the program runs, and the percentage for debug.SetGCPercent: the garbage
// collector waits until at least idlePercent of its size is allocated. Both are zero if the user sets GOGC or
// GOMEMLIMIT.
func IdleBuffer(env func(string) (string, bool)) (buffer []byte, percent int) {
	if isSet(env, "GOGC") || isSet(env, "GOMEMLIMIT") {
		return nil, 0
	}
	// Go writes zeros into a new object if any part of its memory was used before, which would make all of it resident. So a
	// first object takes the memory that was used and freed, and some more, since the collector may free more meanwhile.
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	space := make([]byte, min(m.HeapIdle, idleBytes)+moreBytes)
	buffer = make([]byte, idleBytes)
	runtime.KeepAlive(space)
	return buffer, idlePercent
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
	return limit + idleBytes
}

// isSet reports whether the user sets a variable of Go's garbage collector.
func isSet(env func(string) (string, bool), name string) bool {
	value, ok := env(name)
	return ok && value != ""
}
