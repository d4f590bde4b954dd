package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// Between two garbage collections the program may allocate so many bytes, and so many percent of what is in use. With Go's own
	// setting, which is a percentage alone, a run whose calls are answered at once has a small heap and spends a quarter of its time
	// collecting it; a run of 10,000 conversations has a large heap and takes half as much memory again.
	headroomBytes   = 56 << 20
	headroomPercent = 11
	// smallestHeap is the heap for which the headroom is the smallest heap that Go ever collects: 4 MiB times the percentage.
	smallestHeap = 4 << 20
)

// TuneCollector sets how much may be allocated between two garbage collections, after each of them, for as long as the program runs.
// It leaves what the user sets with GOGC or GOMEMLIMIT.
func TuneCollector(env func(string) (string, bool)) {
	if isSet(env, "GOGC") || isSet(env, "GOMEMLIMIT") {
		return
	}
	debug.SetGCPercent(collectAt(0))
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	afterEachCollection(func() {
		metrics.Read(inUse)
		var sum uint64
		for _, s := range inUse {
			sum += s.Value.Uint64()
		}
		debug.SetGCPercent(collectAt(sum))
	})
}

// collectAt returns the percentage for debug.SetGCPercent while so many bytes are in use.
func collectAt(inUse uint64) int {
	return headroomPercent + int(100*headroomBytes/max(inUse, smallestHeap))
}

// afterEachCollection calls f when a collection has found that an object is in use no more, and makes the next such object.
func afterEachCollection(f func()) {
	object := new(*int) // a pointer: objects without pointers may share their memory, and live longer
	runtime.AddCleanup(object, func(int) {
		f()
		afterEachCollection(f)
	}, 0)
}

// limitMemory makes the garbage collector work harder beyond so much memory, until restore is called. It leaves what the user sets
// with GOMEMLIMIT.
func limitMemory(s *State, limit int64) (restore func()) {
	if isSet(s.Env, "GOMEMLIMIT") {
		return func() {}
	}
	was := debug.SetMemoryLimit(limit)
	return func() { debug.SetMemoryLimit(was) }
}

// isSet reports whether the user sets a variable of Go's garbage collector.
func isSet(env func(string) (string, bool), name string) bool {
	value, ok := env(name)
	return ok && value != ""
}
