package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/internal/serve/gateway/format"
	"parley/internal/serve/gateway/ledger"
	"parley/internal/serve/gateway/session"
)

// metrics serves /metrics. Model names are those that dispatch counts separately, so they are bounded.
type metrics struct {
	http.Handler
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	first     *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	recorded  prometheus.Histogram
	cached    prometheus.Counter
	replayed  prometheus.Counter
	missed    prometheus.Counter
	stops     prometheus.Counter
	byAPI     map[format.API]prometheus.Observer
	firstByte map[format.API]prometheus.Observer
}

const metricsPrefix = "parley_gateway_"

func newMetrics(g *Gateway) *metrics {
	buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricsPrefix + "requests_total", Help: "Calls by endpoint and status."}, []string{"endpoint", "code"}),
		seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metricsPrefix + "request_seconds", Help: "Time of a call, from its request to the end of its answer.", Buckets: buckets}, []string{"endpoint"}),
		first:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metricsPrefix + "first_byte_seconds", Help: "Time of a provider to the first byte of an answer.", Buckets: buckets}, []string{"endpoint"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: metricsPrefix + "in_flight", Help: "Calls that are being served."}),
		recorded: prometheus.NewHistogram(prometheus.HistogramOpts{Name: metricsPrefix + "record_seconds", Help: "Time until a call was recorded.", Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1}}),
		cached:   prometheus.NewCounter(prometheus.CounterOpts{Name: metricsPrefix + "cached_total", Help: "Calls answered by the cache."}),
		replayed: prometheus.NewCounter(prometheus.CounterOpts{Name: metricsPrefix + "replayed_total", Help: "Calls answered by the record."}),
		missed:   prometheus.NewCounter(prometheus.CounterOpts{Name: metricsPrefix + "replay_missed_total", Help: "Calls that are not in the record, with --replay and --resume."}),
		stops:    prometheus.NewCounter(prometheus.CounterOpts{Name: metricsPrefix + "stops_total", Help: "Calls answered with the words that a session's steps are used up."}),
		byAPI:    map[format.API]prometheus.Observer{}, firstByte: map[format.API]prometheus.Observer{},
	}
	for _, api := range []format.API{format.Chat, format.Responses, format.Embeddings, format.Models, format.Messages, format.Count} {
		m.byAPI[api], m.firstByte[api] = m.seconds.WithLabelValues(string(api)), m.first.WithLabelValues(string(api))
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(m.requests, m.seconds, m.first, m.inFlight, m.recorded, m.cached, m.replayed, m.missed, m.stops,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &state{g: g})
	m.Handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return m
}

// ended counts a call that was served.
func (m *metrics) ended(api format.API, status int, began time.Time) {
	m.inFlight.Dec()
	m.requests.WithLabelValues(string(api), strconv.Itoa(status)).Inc()
	m.byAPI[api].Observe(time.Since(began).Seconds())
}

// answered counts the answer of a call.
func (m *metrics) answered(api format.API, c *ledger.Call) {
	r := c.Response
	switch {
	case r == nil:
	case r.Metadata.Cached:
		m.cached.Inc()
	case r.Provider == session.Own:
		m.stops.Inc()
	case r.Metadata.FirstByte > 0:
		m.firstByte[api].Observe(r.Metadata.FirstByte.Seconds())
	}
}

// state collects the counts of other parts when it is asked.
type state struct{ g *Gateway }

// Describe sends nothing: the metrics depend on the models in use.
func (*state) Describe(chan<- *prometheus.Desc) {}

// Collect sends the counts of dispatch, the budget and the sessions.
func (s *state) Collect(to chan<- prometheus.Metric) {
	tell := func(kind prometheus.ValueType, name, help string, v float64, labels ...string) {
		names := []string{"model", "type"}[:len(labels)]
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(metricsPrefix+name, help, names, nil), kind, v, labels...)
	}
	open, all := s.g.sessions.Counts()
	tell(prometheus.GaugeValue, "sessions_open", "Sessions that take calls.", float64(open))
	tell(prometheus.GaugeValue, "sessions", "Sessions that were used since the start.", float64(all))
	if s.g.dispatch == nil {
		return
	}
	stats := s.g.dispatch.Stats()
	spent, reserved := s.g.dispatch.Budget().Spent()
	tell(prometheus.GaugeValue, "upstream_in_flight", "Calls sent to providers and not answered.", float64(stats.InFlight))
	tell(prometheus.GaugeValue, "waiting", "Calls that wait for a provider's limits.", float64(stats.Waiting))
	tell(prometheus.GaugeValue, "spent_dollars", "Spent in all, earlier sittings included.", spent.Dollars())
	tell(prometheus.GaugeValue, "reserved_dollars", "Set aside for calls in flight.", reserved.Dollars())
	for _, name := range stats.Names() {
		m := stats.Models[name]
		tell(prometheus.CounterValue, "attempts_total", "Calls sent to providers.", float64(m.Attempts), name)
		tell(prometheus.CounterValue, "retries_total", "Calls sent again after a failure.", float64(m.Retried), name)
		tell(prometheus.CounterValue, "rate_limited_total", "Calls that a provider refused for its limits.", float64(m.RateLimited), name)
		tell(prometheus.CounterValue, "cost_dollars_total", "Cost of calls.", m.Cost.Dollars(), name)
		tell(prometheus.CounterValue, "tokens_total", "Tokens of calls.", float64(m.Usage.Input), name, "input")
		tell(prometheus.CounterValue, "tokens_total", "Tokens of calls.", float64(m.Usage.Output), name, "output")
	}
}
