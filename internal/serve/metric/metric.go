// Package metric counts, and writes pages that Prometheus reads.
//
// It promises that counting never waits for a reader, and that any text may be the value of a label.
//
// It is not for percentiles (internal/sketch) nor for reading such pages (internal/replica).
package metric

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Histogram counts values by their size.
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
type Page struct {
	text []byte
	last string // the name of the metric that was added last
}

// Serve writes the page as the answer to a request.
func (p *Page) Serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.text) // the client may be gone
}

// Add adds a value. Labels are names and values in turn. All values of a metric are added one after the other.
func (p *Page) Add(t Type, name, help string, v float64, labels ...string) {
	p.begin(t, name, help)
	p.line(name, v, labels)
}

// AddHistogram adds a histogram, as Add adds a value.
func (p *Page) AddHistogram(name, help string, h *Histogram, labels ...string) {
	p.begin(histogram, name, help)
	var sum uint64
	for i := range h.counts {
		sum += h.counts[i].Load()
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = number(h.bounds[i])
		}
		p.line(name+"_bucket", float64(sum), append(slices.Clip(labels), "le", bound))
	}
	p.line(name+"_sum", math.Float64frombits(h.sum.Load()), labels)
	p.line(name+"_count", float64(sum), labels)
}

func (p *Page) begin(t Type, name, help string) {
	if p.last == name {
		return
	}
	p.last = name
	p.text = append(p.text, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+string(t)+"\n"...)
}

func (p *Page) line(name string, v float64, labels []string) {
	p.text = append(p.text, name...)
	before := "{"
	for i := 0; i+1 < len(labels); i += 2 {
		p.text = append(p.text, before+labels[i]+`="`+escaped(labels[i+1])+`"`...)
		before = ","
	}
	if len(labels) > 0 {
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, " "+number(v)+"\n"...)
}

// escaped returns the value of a label as the page has it.
func escaped(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
