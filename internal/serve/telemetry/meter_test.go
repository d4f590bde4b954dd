package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// points returns the counts or the values of a metric, by its attributes.
func (c *collector) points(name string) map[string]float64 {
	out := map[string]float64{}
	for _, m := range c.metrics {
		if m[1][0] != name {
			continue
		}
		for kind, labels := range map[uint64]uint64{5: 7, 7: 7, 9: 9} { // gauge, sum, histogram
			for _, data := range m[kind] {
				for _, p := range fields(data)[1] {
					point := fields(p)
					var text []string
					for _, a := range point[labels] {
						text = append(text, valueOf(fields(a)[2][0]))
					}
					value := binary.LittleEndian.Uint64([]byte(point[4][0]))
					if out[strings.Join(text, " ")] = float64(value); kind != 9 {
						out[strings.Join(text, " ")] = math.Float64frombits(value)
					}
				}
			}
		}
	}
	return out
}

// TestMeasured: every call that was sent is measured, sampled or not, with the names of the conventions; the answers of a
// cache are not, and hostile names are bounded.
func TestMeasured(t *testing.T) {
	t.Parallel()
	to := &collector{}
	x := openTo(t, to, map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "always_off"})
	call, p := callOf(t), &provider.Provider{Name: "gemini"}
	answer := &llm.Response{Text: "a secret", Model: "m-2", Usage: llm.Usage{Input: 7}}
	x.Start(nil, format.Chat, p, "s", call).End(answer, nil)
	x.Start(nil, format.Chat, p, "s", call).End(nil, &llm.Error{Kind: llm.KindOverloaded, Message: "a secret"})
	play := x.StartTrace("run", "study.parley")
	ask := &llm.Request{Model: "lab/small", Messages: []llm.Message{llm.User("a secret")}}
	for range 3 {
		play.Asked(ask, llm.Result{Response: answer})
	}
	play.Asked(ask, llm.Result{Response: &llm.Response{Metadata: llm.Metadata{Cached: true}}})
	play.End("done")
	for i := range 2 * maxSeries {
		x.measure(operation{name: "chat", model: fmt.Sprint(i, strings.Repeat("x", 1000))}, 0, nil, nil)
	}
	x.Measure(func() *Page {
		p := &Page{}
		p.Add(Counter, "parley_calls_total", "Calls.", 3, "model", "m")
		p.Add(Gauge, "parley_in_flight", "Calls.", .5)
		return p
	})
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	seconds, tokens := to.points(durationName), to.points(tokensName)
	for name, want := range map[string]float64{"chat gcp.gemini m m-2": 1, "chat gcp.gemini m overloaded": 1, "chat lab small m-2": 3, "true": maxSeries + 3} {
		if seconds[name] != want {
			t.Errorf("%s: %v, want %v", name, seconds[name], want)
		}
	}
	if len(seconds) != maxSeries+1 || len(to.spans) > 0 || strings.Contains(fmt.Sprint(to.metrics), "secret") {
		t.Errorf("%d series, %d spans", len(seconds), len(to.spans))
	}
	if tokens["chat lab small m-2 input"] != 3 || tokens["chat lab small m-2 output"] != 0 || to.points("parley_calls_total")["m"] != 3 || to.points("parley_in_flight")[""] != .5 {
		t.Errorf("%v", tokens)
	}
}

// TestMetricsAreSent: they are sent from time to time and at the end; the next ones make up for those that were lost.
func TestMetricsAreSent(t *testing.T) {
	t.Parallel()
	refuse := func() (*http.Response, error) { return nil, errors.New("connection refused") }
	gone := answer(http.StatusNotFound) //nolint:bodyclose // the exporter closes it
	for name, c := range map[string]struct {
		answers []func() (*http.Response, error)
		at      string
		want    string
	}{
		"taken":            {nil, "[10s 20s 25s]", ""},
		"refused once":     {[]func() (*http.Response, error){gone}, "[10s 20s 25s]", ""},
		"unreachable once": {[]func() (*http.Response, error){refuse}, "[10s 15s 20s 25s]", ""},
		"refused":          {[]func() (*http.Response, error){gone, gone, gone}, "[10s 20s 25s]", "telemetry: the metrics were not sent: the collector answered 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				to := &collector{answers: c.answers}
				x := openTo(t, to, map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_METRIC_EXPORT_INTERVAL": "10000"})
				x.Start(nil, format.Chat, &provider.Provider{}, "s", callOf(t)).End(nil, nil)
				time.Sleep(25 * time.Second)
				err := x.Close(t.Context())
				if fmt.Sprint(to.at) != c.at || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("sent at %v, want %v; %v", to.at, c.at, err)
				}
			})
		})
	}
}
