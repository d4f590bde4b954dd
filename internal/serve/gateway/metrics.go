package gateway

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"parley/internal/serve/gateway/format"
	"parley/internal/serve/telemetry"
)

// metrics serves /metrics. Model names are those that dispatch counts separately, so they are bounded.
type metrics struct {
	g               *Gateway
	began           time.Time
	inFlight        atomic.Int64
	cached, stopped atomic.Int64
	recorded        *telemetry.Histogram
	byAPI           map[format.API]*apiMetrics // never changed
}

// apiMetrics counts the calls of an endpoint.
type apiMetrics struct {
	byStatus       [1000]atomic.Int64
	seconds, first *telemetry.Histogram
}

const metricsPrefix = "parley_gateway_"

func newMetrics(g *Gateway) *metrics {
	m := &metrics{
		g: g, began: time.Now(), byAPI: map[format.API]*apiMetrics{},
		recorded: telemetry.NewHistogram(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1),
	}
	buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	for _, api := range format.APIs() {
		m.byAPI[api] = &apiMetrics{seconds: telemetry.NewHistogram(buckets...), first: telemetry.NewHistogram(buckets...)}
	}
	return m
}

// ended counts a call that was served.
func (m *metrics) ended(api format.API, status int, began time.Time) {
	m.inFlight.Add(-1)
	of := m.byAPI[api]
	of.byStatus[min(max(status, 0), len(of.byStatus)-1)].Add(1)
	of.seconds.Observe(time.Since(began).Seconds())
}

// answered counts the answer of a call.
func (m *metrics) answered(api format.API, c *Call) {
	r := c.Response
	switch {
	case r == nil:
	case r.Metadata.Cached:
		m.cached.Add(1)
	case r.Provider == ownProvider:
		m.stopped.Add(1)
	case r.Metadata.FirstByte > 0:
		m.byAPI[api].first.Observe(r.Metadata.FirstByte.Seconds())
	}
}

// ServeHTTP implements http.Handler.
func (m *metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) { m.page().Serve(w) }

// page returns the metrics of this moment.
func (m *metrics) page() *telemetry.Page {
	p := &telemetry.Page{}
	m.calls(p)
	m.state(p)
	p.AddProcess(m.began)
	return p
}

// calls writes what the gateway counts itself.
func (m *metrics) calls(p *telemetry.Page) {
	apis := slices.Sorted(maps.Keys(m.byAPI))
	for _, api := range apis {
		for status := range m.byAPI[api].byStatus {
			if n := m.byAPI[api].byStatus[status].Load(); n > 0 {
				p.Add(telemetry.Counter, metricsPrefix+"requests_total", "Calls by endpoint and status.", float64(n), "code", strconv.Itoa(status), "endpoint", string(api))
			}
		}
	}
	for _, api := range apis {
		p.AddHistogram(metricsPrefix+"request_seconds", "Time of a call, from its request to the end of its answer.", m.byAPI[api].seconds, "endpoint", string(api))
	}
	for _, api := range apis {
		p.AddHistogram(metricsPrefix+"first_byte_seconds", "Time of a provider to the first byte of an answer.", m.byAPI[api].first, "endpoint", string(api))
	}
	p.AddHistogram(metricsPrefix+"record_seconds", "Time until a call was recorded.", m.recorded)
	count := func(name, help string, n *atomic.Int64) {
		p.Add(telemetry.Counter, metricsPrefix+name, help, float64(n.Load()))
	}
	count("cached_total", "Calls answered by the cache.", &m.cached)
	count("replayed_total", "Calls answered by the record.", &m.g.ends[endReplayed])
	count("replay_missed_total", "Calls that are not in the record, with --replay and --resume.", &m.g.missed)
	count("stops_total", "Calls answered with the words that a session's steps are used up.", &m.stopped)
}

// state writes the counts of dispatch, the budget and the sessions.
func (m *metrics) state(p *telemetry.Page) {
	gauge := func(name, help string, v float64) { p.Add(telemetry.Gauge, metricsPrefix+name, help, v) }
	open, all := m.g.sessions.Counts()
	gauge("in_flight", "Calls that are being served.", float64(m.inFlight.Load()))
	gauge("sessions_open", "Sessions that take calls.", float64(open))
	gauge("sessions", "Sessions that were used since the start.", float64(all))
	if m.g.dispatch == nil {
		return
	}
	stats := m.g.dispatch.Stats()
	gauge("upstream_in_flight", "Calls sent to providers and not answered.", float64(stats.InFlight))
	gauge("waiting", "Calls that wait for a provider's limits.", float64(stats.Waiting))
	telemetry.AddMoney(p, metricsPrefix, m.g.dispatch)
	telemetry.AddCalls(p, metricsPrefix, stats)
}
