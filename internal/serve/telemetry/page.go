package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/provider"
	"parley/internal/kit/auth"
	"parley/internal/kit/sketch"
	"parley/journal"
	"parley/llm"
)

// Histogram counts values by their size. Counting never waits for a reader.
type Histogram struct {
	bounds []float64
	counts []atomic.Uint64 // of each bound, and of what is above all
	sum    atomic.Uint64   // the bits of a float64
}

// NewHistogram returns a histogram with the upper bounds of its buckets, in order.
func NewHistogram(bounds ...float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// Observe counts a value.
func (h *Histogram) Observe(v float64) { h.ObserveN(v, 1) }

// ObserveN counts a value n times.
func (h *Histogram) ObserveN(v float64, n int) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i].Add(uint64(n))
	for {
		was := h.sum.Load()
		if h.sum.CompareAndSwap(was, math.Float64bits(math.Float64frombits(was)+v*float64(n))) {
			return
		}
	}
}

// Type is the type of a metric.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	histogram Type = "histogram"
)

// Page is a page of metrics. The zero value is an empty one.
type Page struct{ families []Family }

// Family is a metric with all its values.
type Family struct {
	Type
	Name, Help string
	Points     []Point
}

// Point is a value, or the counts of a histogram. Any text may be the value of a label.
type Point struct {
	Labels []string // names and values in turn
	Value  float64  // the sum of a histogram
	Bounds []float64
	Counts []uint64 // of each bound, and of what is above all; nil: it is no histogram
}

// Families returns the metrics, in order.
func (p *Page) Families() []Family { return p.families }

// Add adds a value. Labels are names and values in turn. All values of a metric are added one after the other.
func (p *Page) Add(t Type, name, help string, v float64, labels ...string) {
	p.add(t, name, help, Point{Labels: labels, Value: v})
}

// AddHistogram adds a histogram, as Add adds a value.
func (p *Page) AddHistogram(name, help string, h *Histogram, labels ...string) {
	counts := make([]uint64, len(h.counts))
	for i := range counts {
		counts[i] = h.counts[i].Load()
	}
	p.add(histogram, name, help, Point{Labels: labels, Value: math.Float64frombits(h.sum.Load()), Bounds: h.bounds, Counts: counts})
}

func (p *Page) add(t Type, name, help string, v Point) {
	if n := len(p.families); n == 0 || p.families[n-1].Name != name {
		p.families = append(p.families, Family{Type: t, Name: name, Help: help})
	}
	last := &p.families[len(p.families)-1]
	last.Points = append(last.Points, v)
}

// Serve writes the page for Prometheus, as the answer to a request.
func (p *Page) Serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.text()) // the client may be gone
}

// text returns the page as Prometheus reads it.
func (p *Page) text() (b []byte) {
	for _, f := range p.families {
		b = append(b, "# HELP "+f.Name+" "+f.Help+"\n# TYPE "+f.Name+" "+string(f.Type)+"\n"...)
		for _, v := range f.Points {
			if v.Counts == nil {
				b = appendLine(b, f.Name, v.Value, v.Labels)
				continue
			}
			var sum uint64
			for i, n := range v.Counts {
				sum += n
				bound := math.Inf(1)
				if i < len(v.Bounds) {
					bound = v.Bounds[i]
				}
				b = appendLine(b, f.Name+"_bucket", float64(sum), append(slices.Clip(v.Labels), "le", formatNumber(bound)))
			}
			b = appendLine(b, f.Name+"_sum", v.Value, v.Labels)
			b = appendLine(b, f.Name+"_count", float64(sum), v.Labels)
		}
	}
	return b
}

func appendLine(b []byte, name string, v float64, labels []string) []byte {
	b = append(b, name...)
	before := "{"
	for i := 0; i+1 < len(labels); i += 2 {
		b = append(b, before+labels[i]+`="`+escapeLabel(labels[i+1])+`"`...)
		before = ","
	}
	if len(labels) > 0 {
		b = append(b, '}')
	}
	return append(b, " "+formatNumber(v)+"\n"...)
}

// escapeLabel returns the value of a label as the page has it.
func escapeLabel(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}

func formatNumber(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Calls counts the calls of a process, and names the providers that they go to.
type Calls interface {
	Spender
	Providers() []provider.Provider
	Stats() dispatch.Snapshot
	Limits() []dispatch.Limit
}

// Spender has a budget that its calls may wait for. Package dispatch implements it.
type Spender interface {
	Waits(now time.Time) []dispatch.Wait
	Budget() *budget.Budget
}

// RunState is the state of a run.
type RunState struct {
	Episodes         journal.EpisodeCounts
	Paused, Draining bool
}

// Prefix begins the name of every metric of a run.
const Prefix = "parley_"

// RunPage returns the metrics of a process that plays a run or asks many questions. run is nil if no run is played.
func RunPage(calls Calls, run func() RunState, began time.Time) *Page {
	p := &Page{}
	AddStats(p, calls.Stats())
	gauge := func(name, help string, v float64, labels ...string) {
		p.Add(Gauge, Prefix+name, help, v, labels...)
	}
	AddMoney(p, Prefix, calls)
	addLimits(p, calls.Limits())
	if run != nil {
		r := run()
		for _, one := range []struct {
			state string
			n     int
		}{{"ended", r.Episodes.Ended}, {"failed", r.Episodes.Failed}, {"playing", r.Episodes.Playing}, {"waiting", r.Episodes.Waiting}} {
			gauge("episodes", "Episodes by state.", float64(one.n), "state", one.state)
		}
		gauge("paused", "1 while no calls are sent.", oneIf(r.Paused))
		gauge("draining", "1 while no episodes begin.", oneIf(r.Draining))
	}
	p.AddProcess(began)
	return p
}

// AddMoney adds the sums of a budget, and how many calls wait for room in it.
func AddMoney(p *Page, prefix string, calls Spender) {
	gauge := func(name, help string, v float64) { p.Add(Gauge, prefix+name, help, v) }
	s := calls.Budget().Sums()
	gauge("spent_dollars", "Spent in all, earlier processes included.", s.Spent.Dollars())
	gauge("at_risk_dollars", "What calls whose end is unknown may have cost.", s.AtRisk.Dollars())
	gauge("set_aside_dollars", "Set aside for calls that are open.", s.Aside.Dollars())
	gauge("budget_dollars", "What may be spent in all; 0 is no limit.", s.Limit.Dollars())
	if s.Limit > 0 {
		gauge("left_dollars", "What is left of the budget.", s.Left().Dollars())
	}
	waiting := 0
	for _, w := range calls.Waits(time.Now()) {
		if w.Money != nil {
			waiting = llm.AddTokens(waiting, w.Money.Calls)
		}
	}
	gauge("waiting_for_budget", "Calls that wait for room in the budget.", float64(waiting))
}

// AddStats adds the calls of a process: those that ended, by model, and those that have not.
func AddStats(p *Page, stats dispatch.Snapshot) {
	AddCalls(p, Prefix, stats)
	addErrors(p, stats)
	for _, model := range stats.Names() {
		m := stats.Models[model]
		p.AddHistogram(Prefix+"latency_seconds", "Time of a provider to answer.", latencyHistogram(&m.Latency), "model", model)
	}
	p.Add(Gauge, Prefix+"in_flight", "Calls sent to providers and not answered.", float64(stats.InFlight))
	p.Add(Gauge, Prefix+"waiting", "Calls that wait for a provider's limits.", float64(stats.Waiting))
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// AddCalls adds what was sent to providers, by model.
func AddCalls(p *Page, prefix string, stats dispatch.Snapshot) {
	counter := func(name, help string, value func(*dispatch.ModelStats) float64, labels ...string) {
		for _, model := range stats.Names() {
			s := stats.Models[model]
			p.Add(Counter, prefix+name, help, value(&s), append([]string{"model", model}, labels...)...)
		}
	}
	counter("calls_total", "Calls that ended.", func(s *dispatch.ModelStats) float64 { return float64(s.Calls) })
	counter("calls_failed_total", "Calls that ended with an error.", func(s *dispatch.ModelStats) float64 { return float64(s.Failed) })
	counter("attempts_total", "Calls sent to providers.", func(s *dispatch.ModelStats) float64 { return float64(s.Attempts) })
	counter("retries_total", "Calls sent again after a failure.", func(s *dispatch.ModelStats) float64 { return float64(s.Retried) })
	counter("rate_limited_total", "Calls that a provider refused for its limits.", func(s *dispatch.ModelStats) float64 { return float64(s.RateLimited) })
	counter("cost_dollars_total", "Cost of calls, with what failed attempts, second attempts and repairs cost or may have cost.",
		func(s *dispatch.ModelStats) float64 { return s.Cost.Plus(s.Uncertain).Dollars() })
	counter("tokens_total", "Tokens of calls.", func(s *dispatch.ModelStats) float64 { return float64(s.Usage.Input) }, "type", "input")
	counter("tokens_total", "Tokens of calls.", func(s *dispatch.ModelStats) float64 { return float64(s.Usage.Output) }, "type", "output")
}

// addErrors adds the failed attempts by model and kind.
func addErrors(p *Page, stats dispatch.Snapshot) {
	for _, model := range stats.Names() {
		for _, kind := range llm.Kinds() {
			if n := stats.Models[model].Errors[kind]; n > 0 {
				p.Add(Counter, Prefix+"errors_total", "Failed attempts by kind.", float64(n), "model", model, "kind", string(kind))
			}
		}
	}
}

// addLimits adds the limits of each server, as far as they are known.
func addLimits(p *Page, limits []dispatch.Limit) {
	labels := func(l dispatch.Limit) []string {
		return []string{"provider", l.Provider, "server", l.Server, "models", l.Models}
	}
	for _, l := range limits {
		p.Add(Gauge, Prefix+"server_in_flight", "Calls in flight at a server.", float64(l.InFlight), labels(l)...)
	}
	for _, l := range limits {
		p.Add(Gauge, Prefix+"server_concurrency", "Calls that may be in flight at a server.", float64(l.Concurrency), labels(l)...)
	}
	for _, l := range limits {
		for _, limit := range []struct {
			unit string
			rate float64
		}{{"requests", l.Requests}, {"tokens", l.Tokens}, {"input_tokens", l.Input}, {"output_tokens", l.Output}} {
			if limit.rate > 0 {
				p.Add(Gauge, Prefix+"server_limit_per_minute", "Rates that a server allows.", limit.rate, append(labels(l), "unit", limit.unit)...)
			}
		}
	}
}

// latencyHistogram returns the durations of a sketch as a histogram.
func latencyHistogram(s *sketch.Sketch) *Histogram {
	h := NewHistogram(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
	s.Buckets(func(low, high time.Duration, n int) { h.ObserveN((low+high).Seconds()/2, n) })
	return h
}

// Serve serves the page at /metrics until end is called. keys are those of which readers must send
// one; none are needed if there are none.
func Serve(ctx context.Context, ln net.Listener, keys []string, page func() *Page) (end func()) {
	guard := auth.Guard{Keys: auth.HashKeys(keys), Refuse: refuseReader}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { page().Serve(w) })
	srv := guard.Server(mux)
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(ln) }) // it ends when it is closed
	return func() {
		_ = srv.Close() // nobody waits for the page of a process that ends
		wg.Wait()
	}
}

func refuseReader(w http.ResponseWriter, _ *http.Request, why auth.Refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(why.Status)
	if b, err := json.Marshal(map[string]map[string]string{"error": {"code": why.Code, "message": why.Message}}); err == nil {
		_, _ = w.Write(append(b, '\n')) // the client may be gone
	}
}

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
