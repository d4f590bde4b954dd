package telemetry

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/llm"
)

// operation is what a call asks for.
type operation struct{ name, provider, model string }

// series are the calls that are measured together.
type series struct {
	operation
	answered string // the model that answered
	failed   llm.Kind
}

// The names of models come from clients and servers, so they are bounded, and so are the series.
const (
	maxSeries = 2000
	maxName   = 256        // bytes of the name of a model
	overflow  = "overflow" // the name of the operation that stands for all other series
)

// measured is what is measured of a series.
type measured struct{ seconds, input, output *Histogram }

// meter measures calls, and sends that and another page of metrics.
type meter struct {
	*sender
	resource message
	began    time.Time
	every    time.Duration // between exports
	limit    time.Duration // for all attempts at one
	page     atomic.Pointer[func() *Page]
	err      error // of the last export; of the sender alone, until it has ended

	mu  sync.Mutex
	all map[series]*measured
}

func newMeter(env lookup, to *sender, resource message) (m *meter, err error) {
	m = &meter{sender: to, resource: resource, began: time.Now(), all: map[series]*measured{}}
	const temporality, every, limit = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT"
	if err := oneOf(temporality, strings.ToLower(env.value(temporality)), "cumulative"); err != nil {
		return nil, err
	}
	if m.every, err = milliseconds(every, env.value(every), time.Minute); err != nil {
		return nil, err
	}
	m.limit, err = milliseconds(limit, env.value(limit), 30*time.Second)
	return m, err
}

// error says that the last metrics were lost. The sender has ended.
func (m *meter) error() error {
	if m.err != nil {
		return fmt.Errorf("telemetry: the metrics were not sent: %w", m.err)
	}
	return nil
}

// send sends the metrics from time to time, and when closing is closed. The next ones make up for
// those that were lost.
func (m *meter) send(ctx context.Context, closing <-chan struct{}) {
	defer m.client.CloseIdleConnections()
	tick := time.NewTicker(m.every)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-closing:
			last, m.last = true, true
		}
		m.err = m.export(ctx, m.limit, m.resource, m.collect(time.Now()))
	}
}

// Measure also sends the metrics of a page from now on.
func (x *Exporter) Measure(page func() *Page) {
	if x != nil && x.meter != nil {
		x.meter.page.Store(&page)
	}
}

// measure counts a call. Answers of our own cache are no calls.
func (x *Exporter) measure(op operation, took time.Duration, r *llm.Response, e *llm.Error) {
	if x.meter == nil || r != nil && r.Metadata.Cached {
		return
	}
	s := series{operation: op}
	switch {
	case e != nil:
		s.failed = e.Kind
	case r != nil:
		s.answered = r.Model
	}
	h := x.meter.measuredOf(s)
	h.seconds.Observe(took.Seconds())
	if r == nil {
		return
	}
	for _, n := range []struct {
		tokens int
		to     *Histogram
	}{{r.Usage.Input, h.input}, {r.Usage.Output, h.output}} {
		if n.tokens > 0 {
			n.to.Observe(float64(n.tokens))
		}
	}
}

// measuredOf returns what is measured of a series.
func (m *meter) measuredOf(s series) *measured {
	s.model, s.answered = cutName(s.model), cutName(s.answered)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[s] == nil && len(m.all) >= maxSeries {
		s = series{operation: operation{name: overflow}}
	}
	if m.all[s] == nil {
		m.all[s] = newMeasured()
	}
	return m.all[s]
}

// cutName bounds a name.
func cutName(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.Clone(name[:maxName])
}

// newMeasured has the buckets that the conventions recommend.
func newMeasured() *measured {
	var seconds, tokens []float64
	for i := range 14 {
		seconds = append(seconds, .01*math.Exp2(float64(i)))
		tokens = append(tokens, math.Exp2(float64(2*i)))
	}
	return &measured{NewHistogram(seconds...), NewHistogram(tokens...), NewHistogram(tokens...)}
}

// The names of the GenAI conventions, and their units.
const (
	durationName = "gen_ai.client.operation.duration"
	tokensName   = "gen_ai.client.token.usage"
)

func unitOf(name string) string {
	switch name {
	case durationName:
		return "s"
	case tokensName:
		return "{token}"
	default: // the names of others have their units
		return ""
	}
}

// collect returns the metrics of this moment.
func (m *meter) collect(now time.Time) []message {
	p := &Page{}
	if page := m.page.Load(); page != nil {
		p = (*page)()
	}
	m.addCalls(p)
	var out []message
	for _, f := range p.Families() {
		out = append(out, m.family(&f, now))
	}
	return out
}

// addCalls adds what was measured of calls.
func (m *meter) addCalls(p *Page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []series
	for s := range m.all {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b series) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.provider, b.provider), strings.Compare(a.model, b.model), strings.Compare(a.answered, b.answered), cmp.Compare(a.failed, b.failed))
	})
	for _, s := range all {
		p.AddHistogram(durationName, "Time of calls of models.", m.all[s].seconds, s.labels()...)
	}
	for _, s := range all {
		if s.failed != "" {
			continue // nobody knows
		}
		p.AddHistogram(tokensName, "Tokens of calls of models.", m.all[s].input, append(s.labels(), tokenType, "input")...)
		p.AddHistogram(tokensName, "Tokens of calls of models.", m.all[s].output, append(s.labels(), tokenType, "output")...)
	}
}

// labels returns the attributes of a series: names and values in turn.
func (s series) labels() []string {
	if s.name == overflow {
		return []string{"otel.metric.overflow", "true"}
	}
	out := []string{operationName, s.name, providerName, s.provider, requestModel, s.model}
	if s.answered != "" {
		out = append(out, responseModel, s.answered)
	}
	if s.failed != "" {
		out = append(out, errorType, string(s.failed))
	}
	return out
}

// family returns a metric as OTLP has it. Sums count from the start of the process.
func (m *meter) family(f *Family, now time.Time) message {
	const gauge, sum, histogram, cumulative = 5, 7, 9, 2
	var points message
	for i := range f.Points {
		points = points.bytes(1, m.point(&f.Points[i], now))
	}
	out := message(nil).text(1, f.Name).text(2, f.Help).text(3, unitOf(f.Name))
	switch f.Type {
	case Counter:
		return out.bytes(sum, points.number(2, cumulative).number(3, 1)) // it only grows
	case Gauge:
		return out.bytes(gauge, points)
	default:
		return out.bytes(histogram, points.number(2, cumulative))
	}
}

// point returns a value as OTLP has it.
func (m *meter) point(p *Point, now time.Time) message {
	out := message(nil).long(2, uint64(m.began.UnixNano())).long(3, uint64(now.UnixNano()))
	value, labels := math.Float64bits(p.Value), uint64(7)
	if p.Counts == nil {
		out = out.long(4, value)
	} else {
		var all uint64
		var counts, bounds message
		for _, n := range p.Counts {
			all += n
			counts = binary.LittleEndian.AppendUint64(counts, n)
		}
		for _, b := range p.Bounds {
			bounds = binary.LittleEndian.AppendUint64(bounds, math.Float64bits(b))
		}
		labels, out = 9, out.long(4, all).long(5, value).bytes(6, counts).bytes(7, bounds)
	}
	for i := 0; i+1 < len(p.Labels); i += 2 {
		out = out.bytes(labels, textOf(p.Labels[i], p.Labels[i+1]))
	}
	return out
}
