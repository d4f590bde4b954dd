// Part metric counts, and makes pages of metrics, which Prometheus reads and package telemetry sends.
//
// It promises that counting never waits for a reader, and that any text may be the value of a label.
//
// It is not for percentiles (internal/kit/sketch) nor for reading such pages (internal/ask/dispatch/replica).

package telemetry

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
type Page struct{ families []Family }

// Family is a metric with all its values.
type Family struct {
	Type
	Name, Help string
	Points     []Point
}

// Point is a value, or the counts of a histogram.
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
				b = appendLine(b, f.Name+"_bucket", float64(sum), append(slices.Clip(v.Labels), "le", number(bound)))
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
		b = append(b, before+labels[i]+`="`+escaped(labels[i+1])+`"`...)
		before = ","
	}
	if len(labels) > 0 {
		b = append(b, '}')
	}
	return append(b, " "+number(v)+"\n"...)
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
