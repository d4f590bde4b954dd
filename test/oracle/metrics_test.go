package oracle

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"parley/internal/serve/gateway"
	"parley/journal"
)

// TestMetrics has Prometheus' own parser read the page of a gateway.
func TestMetrics(t *testing.T) {
	t.Parallel()
	url := startGateway(t, startSim(t), &journal.Memory{}, func(*gateway.Config) {}, "openai")
	for _, name := range []string{"m", `a \"quoted\" name\\n`} {
		res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"`+name+`","messages":[{"role":"user","content":"x"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	res, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for _, endpoint := range families["parley_gateway_request_seconds"].GetMetric() {
		n += endpoint.GetHistogram().GetSampleCount()
	}
	if n != 2 {
		t.Errorf("%d calls in the histograms", n)
	}
	if len(families["parley_gateway_attempts_total"].GetMetric()) != 2 || families["go_goroutines"].GetMetric()[0].GetGauge().GetValue() < 1 {
		t.Errorf("%v", families)
	}
}
