package telemetry

import (
	"bytes"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// fromRuntime is a metric that Go has about itself.
type fromRuntime struct {
	from string
	Type
	name, help string
}

// runtimeMetrics returns metrics of Go under the names that Prometheus' own library uses.
func runtimeMetrics() []fromRuntime {
	return []fromRuntime{
		{"/sched/goroutines:goroutines", Gauge, "go_goroutines", "Goroutines that exist."},
		{"/sched/gomaxprocs:threads", Gauge, "go_sched_gomaxprocs_threads", "Threads that may run Go code at the same time."},
		{"/memory/classes/heap/objects:bytes", Gauge, "go_memstats_heap_alloc_bytes", "Bytes of objects on the heap."},
		{"/gc/heap/allocs:bytes", Counter, "go_memstats_alloc_bytes_total", "Bytes that were allocated, freed ones included."},
		{"/gc/heap/allocs:objects", Counter, "go_memstats_mallocs_total", "Objects that were allocated, freed ones included."},
		{"/gc/heap/goal:bytes", Gauge, "go_memstats_next_gc_bytes", "Size of the heap at which the next garbage collection ends."},
		{"/memory/classes/total:bytes", Gauge, "go_memstats_sys_bytes", "Bytes that the Go runtime has from the system."},
		{"/gc/cycles/total:gc-cycles", Counter, "go_gc_cycles_total_gc_cycles_total", "Garbage collections."},
	}
}

// AddProcess adds what Go and, on Linux, the system say about this process, which began at a time.
func (p *Page) AddProcess(began time.Time) {
	all := runtimeMetrics()
	samples := make([]metrics.Sample, len(all))
	for i, m := range all {
		samples[i].Name = m.from
	}
	metrics.Read(samples)
	for i, m := range all {
		if v := samples[i].Value; v.Kind() == metrics.KindUint64 {
			p.Add(m.Type, m.name, m.help, float64(v.Uint64()))
		}
	}
	p.Add(Gauge, "go_info", "The version of Go.", 1, "version", runtime.Version())
	p.Add(Gauge, "process_start_time_seconds", "Start of the process, in seconds since 1970.", float64(began.UnixMilli())/1e3)
	p.addProc("/proc/self")
}

// addProc adds what Linux shows of a process in a folder. It leaves out what it cannot read.
func (p *Page) addProc(dir string) {
	const ticks = 100 // a second, on every Linux
	if files, err := os.ReadDir(dir + "/fd"); err == nil {
		p.Add(Gauge, "process_open_fds", "Open file descriptors.", float64(len(files)))
	}
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return
	}
	fields := strings.Fields(string(b)[bytes.LastIndexByte(b, ')')+1:]) // the name may contain anything
	field := func(i int) float64 {                                      // as proc(5) counts them
		if i -= 3; i >= len(fields) {
			return 0
		}
		v, _ := strconv.ParseFloat(fields[i], 64)
		return v
	}
	p.Add(Counter, "process_cpu_seconds_total", "CPU time, of users and the system.", (field(14)+field(15))/ticks)
	p.Add(Gauge, "process_virtual_memory_bytes", "Size of the address space.", field(23))
	p.Add(Gauge, "process_resident_memory_bytes", "Memory that is in use.", field(24)*float64(os.Getpagesize()))
}
