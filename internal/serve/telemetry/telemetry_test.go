package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// collector answers requests with spans. It keeps what it took.
type collector struct {
	answers  []func() (*http.Response, error) // the next ones; then everything is taken
	began    time.Time
	at       []time.Duration // of each request
	spans    []map[uint64][]string
	metrics  []map[uint64][]string
	header   http.Header
	failures []error // that it does not accept something
}

// RoundTrip implements http.RoundTripper.
func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	c.at, c.header = append(c.at, time.Since(c.began)), r.Header
	if len(c.answers) > 0 {
		next := c.answers[0]
		c.answers = c.answers[1:]
		return next()
	}
	body := r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			return nil, err
		}
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	for _, one := range fields(fields(fields(string(b))[1][0])[2][0])[2] {
		if r.URL.Path == "/v1/metrics" {
			c.metrics = append(c.metrics, fields(one))
		} else {
			c.spans = append(c.spans, fields(one))
		}
	}
	return answer(200)()
}

func answer(status int, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		h := http.Header{}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: h, Body: http.NoBody}, nil
	}
}

// fields splits a message of protobuf. Numbers are written in decimal.
func fields(m string) map[uint64][]string {
	out, b := map[uint64][]string{}, []byte(m)
	number := func() uint64 {
		u, n := binary.Uvarint(b)
		b = b[n:]
		return u
	}
	for len(b) > 0 {
		key := number()
		var v string
		switch key & 7 {
		case varint:
			v = fmt.Sprint(number())
		case fixed64:
			v, b = string(b[:8]), b[8:]
		case fixed32:
			v, b = string(b[:4]), b[4:]
		default:
			n := number()
			v, b = string(b[:n]), b[n:]
		}
		out[key>>3] = append(out[key>>3], v)
	}
	return out
}

// valueOf returns the value of an attribute as text.
func valueOf(value string) string {
	for kind, v := range fields(value) {
		switch kind {
		case 4:
			return fmt.Sprint(math.Float64frombits(binary.LittleEndian.Uint64([]byte(v[0]))))
		case 5:
			return fields(fields(v[0])[1][0])[1][0]
		default:
			return v[0]
		}
	}
	return ""
}

// openTo returns an exporter of spans that sends to c. The environment may ask for metrics too.
func openTo(t *testing.T, c *collector, env map[string]string) *Exporter {
	t.Helper()
	all := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector", "OTEL_METRICS_EXPORTER": "none"}
	maps.Copy(all, env)
	x, err := Open(t.Context(), func(name string) (string, bool) { v, ok := all[name]; return v, ok }, "parley-gateway", "1", func(err error) { c.failures = append(c.failures, err) })
	if err != nil {
		t.Fatal(err)
	}
	c.began = time.Now()
	if x.spans != nil {
		x.spans.client.Transport = c
	}
	if x.meter != nil {
		x.meter.client.Transport = c
	}
	return x
}

func callOf(t *testing.T) *format.Call {
	t.Helper()
	call, err := format.Decode(format.Chat, format.Address{}, []byte(`{"model":"m","max_tokens":9,"temperature":0.5,"stream":true,"n":2,"messages":[{"role":"user","content":"a secret"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return call
}

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// TestSpans checks that a span has what the conventions want, and no text of the call.
func TestSpans(t *testing.T) {
	t.Parallel()
	to := &collector{}
	tr := openTo(t, to, map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b"})
	call := callOf(t)
	p := &provider.Provider{Name: "gemini", BaseURL: "https://llm.example.com:8443/v1"}
	parent := http.Header{"Traceparent": {traceparent}}
	tr.Start(parent, format.Chat, p, "s\xff", call).End(&llm.Response{
		Text: "another secret", Model: "m-2", ID: "id", Finish: llm.FinishStop, Usage: llm.Usage{Input: 7, Output: 3},
		Metadata: llm.Metadata{FirstByte: time.Second, Attempts: 3},
	}, nil)
	tr.Start(nil, format.Embeddings, p, "s", call).End(nil, &llm.Error{Kind: llm.KindOverloaded, Message: "a secret"})
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(to.spans) != 2 || to.header.Get("X-Key") != "a b" {
		t.Fatalf("%d spans, %v", len(to.spans), to.header)
	}
	got := map[string]string{}
	for _, s := range to.spans {
		for _, a := range s[9] {
			kv := fields(a)
			got[s[5][0]+" "+kv[1][0]] = valueOf(kv[2][0])
		}
	}
	for key, want := range map[string]string{
		"chat m gen_ai.operation.name": "chat", "chat m gen_ai.provider.name": "gcp.gemini", "chat m gen_ai.conversation.id": "s\uFFFD",
		"chat m gen_ai.request.model": "m", "chat m gen_ai.request.max_tokens": "9", "chat m gen_ai.request.temperature": "0.5",
		"chat m gen_ai.request.choice.count": "2", "chat m gen_ai.request.stream": "1", "chat m gen_ai.response.model": "m-2",
		"chat m gen_ai.response.finish_reasons": "stop", "chat m gen_ai.usage.input_tokens": "7", "chat m gen_ai.usage.output_tokens": "3",
		"chat m server.address": "llm.example.com", "chat m server.port": "8443", "chat m parley.retries": "2", "embeddings m error.type": "overloaded",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if all := fmt.Sprint(to.spans); strings.Contains(all, "secret") {
		t.Error(all)
	}
	first, second := to.spans[0], to.spans[1]
	if hex.EncodeToString([]byte(first[1][0]+first[4][0])) != strings.ReplaceAll(traceparent[3:52], "-", "") || second[4] != nil || fields(second[15][0])[3][0] != "2" {
		t.Errorf("%v", to.spans)
	}
}

// TestNone checks that a nil exporter does nothing, and which environments make one.
func TestNone(t *testing.T) {
	t.Parallel()
	var none *Exporter
	none.Start(nil, format.Chat, &provider.Provider{}, "s", &format.Call{}).End(nil, nil)
	none.Measure(nil)
	if err := none.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for env, want := range map[string][2]bool{
		"":                              {},
		"OTEL_METRIC_EXPORT_INTERVAL=1": {},
		"ENDPOINT=http://h":             {true, true},
		"TRACES_ENDPOINT=http://h":      {true, false},
		"METRICS_ENDPOINT=http://h":     {false, true},
		"ENDPOINT=http://h OTEL_METRICS_EXPORTER=none OTEL_TRACES_EXPORTER=otlp": {true, false},
		"ENDPOINT=http://h OTEL_TRACES_EXPORTER=none OTEL_TRACES_SAMPLER=wrong":  {false, true},
		"ENDPOINT=http://h OTEL_METRICS_EXPORTER=none OTEL_TRACES_EXPORTER=none": {},
		"ENDPOINT=http://h OTEL_SDK_DISABLED=True":                               {},
	} {
		x, err := open(envOf(env), "parley", "1")
		if err != nil || (x != nil) != (want[0] || want[1]) || x != nil && (x.spans != nil) != want[0] || x != nil && (x.meter != nil) != want[1] {
			t.Errorf("%q: %+v, %v; want %v", env, x, err, want)
		}
	}
}

// TestFailures has collectors that fail in different ways.
func TestFailures(t *testing.T) {
	t.Parallel()
	refuse := func() (*http.Response, error) { return nil, errors.New("connection refused") }
	for name, c := range map[string]struct {
		answers []func() (*http.Response, error)
		at      []time.Duration
		want    string
	}{
		"taken":            {at: []time.Duration{sendInterval}},
		"busy, then fine":  {answers: []func() (*http.Response, error){answer(503), answer(429, "Retry-After", "17")}, at: []time.Duration{5 * time.Second, 10 * time.Second, 27 * time.Second}}, //nolint:bodyclose // the tracer closes it
		"unreachable once": {answers: []func() (*http.Response, error){refuse}, at: []time.Duration{5 * time.Second, 10 * time.Second}},
		"refused":          {answers: []func() (*http.Response, error){answer(400)}, at: []time.Duration{sendInterval}, want: "telemetry: 1 spans were not sent: the collector answered 400"},                            //nolint:bodyclose // the tracer closes it
		"moved":            {answers: []func() (*http.Response, error){answer(302, "Location", "http://elsewhere")}, at: []time.Duration{sendInterval}, want: "answered 302"},                                            //nolint:bodyclose // the tracer closes it
		"busy for long":    {answers: slices.Repeat([]func() (*http.Response, error){answer(503)}, 9), at: []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second}, want: "answered 503"}, //nolint:bodyclose // the tracer closes it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				to := &collector{answers: c.answers}
				tr := openTo(t, to, nil)
				tr.Start(nil, format.Chat, &provider.Provider{}, "s", callOf(t)).End(nil, nil)
				time.Sleep(3 * time.Minute)
				err := tr.Close(t.Context())
				if fmt.Sprint(to.at) != fmt.Sprint(c.at) || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || (err == nil) != (len(to.spans) == 1) {
					t.Errorf("sent at %v, want %v; %d spans, %v", to.at, c.at, len(to.spans), err)
				}
				if want := min(1, len(c.answers)); len(to.failures) != want {
					t.Errorf("it said %v, want %d", to.failures, want)
				}
			})
		})
	}
}

// TestSlow has a collector that does not answer: calls never wait, and the end waits as long as it may.
func TestSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		to := &collector{answers: []func() (*http.Response, error){func() (*http.Response, error) { <-block; return nil, context.Canceled }}}
		tr := openTo(t, to, nil)
		end := func(n int) {
			for range n {
				tr.Start(nil, format.Chat, &provider.Provider{}, "s", callOf(t)).End(nil, nil)
			}
			synctest.Wait()
		}
		end(batchSpans)
		end(queueSpans)
		end(3)
		if len(to.failures) != 1 || !strings.Contains(to.failures[0].Error(), "too slow") {
			t.Errorf("it said %v", to.failures)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(2*time.Second, func() { close(block) })
		if err := tr.Close(ctx); err == nil || !strings.Contains(err.Error(), fmt.Sprint(batchSpans+3, " spans")) {
			t.Error(err)
		}
		if len(to.spans) != queueSpans {
			t.Errorf("%d spans after the failure", len(to.spans))
		}
	})
}

// TestSettings reads the environment.
func TestSettings(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"ENDPOINT=http://h:4318":                                                        "http://h:4318/v1/traces",
		"ENDPOINT=https://h/otel/":                                                      "https://h/otel/v1/traces",
		"ENDPOINT=http://h TRACES_ENDPOINT=http://t/in":                                 "http://t/in",
		"ENDPOINT=http://h TRACES_TIMEOUT=50 PROTOCOL=":                                 "http://h/v1/traces http://h/v1/metrics 10s 1m0s",
		"METRICS_ENDPOINT=http://m/in METRICS_TIMEOUT=50 OTEL_METRIC_EXPORT_INTERVAL=7": "http://m/in 50ms 7ms",
		"METRICS_ENDPOINT=http://m TRACES_PROTOCOL=grpc":                                "http://m 10s",
		"ENDPOINT=http://h METRICS_PROTOCOL=grpc":                                       `OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: unknown "grpc"`,
		"ENDPOINT=http://h OTEL_METRIC_EXPORT_INTERVAL=0":                               "OTEL_METRIC_EXPORT_INTERVAL",
		"ENDPOINT=http://h OTEL_METRIC_EXPORT_TIMEOUT=1s":                               "OTEL_METRIC_EXPORT_TIMEOUT",
		"ENDPOINT=http://h METRICS_TEMPORALITY_PREFERENCE=delta":                        "want cumulative",
		"ENDPOINT=http://h OTEL_METRICS_EXPORTER=prometheus":                            `OTEL_METRICS_EXPORTER: unknown "prometheus"; want otlp or none`,
		"ENDPOINT=h:4318":                                                                "OTLP_ENDPOINT: want the URL of a collector",
		"ENDPOINT=http://h PROTOCOL=grpc":                                                `OTEL_EXPORTER_OTLP_PROTOCOL: unknown "grpc"; want http/protobuf`,
		"ENDPOINT=http://h COMPRESSION=zstd":                                             "want none or gzip",
		"ENDPOINT=http://h TIMEOUT=10s":                                                  "OTEL_EXPORTER_OTLP_TIMEOUT",
		"ENDPOINT=http://h TIMEOUT=0":                                                    "milliseconds",
		"ENDPOINT=http://h HEADERS=secret":                                               "OTEL_EXPORTER_OTLP_HEADERS: want name=value",
		"ENDPOINT=http://h HEADERS=k=secret%0a":                                          "percent-encoded",
		"ENDPOINT=http://h CERTIFICATE=/missing":                                         "OTEL_EXPORTER_OTLP_CERTIFICATE",
		"ENDPOINT=http://h CLIENT_KEY=/missing":                                          "OTEL_EXPORTER_OTLP_CLIENT_KEY",
		"ENDPOINT=http://h OTEL_RESOURCE_ATTRIBUTES=x":                                   "OTEL_RESOURCE_ATTRIBUTES",
		"ENDPOINT=http://h OTEL_TRACES_SAMPLER=some":                                     `unknown sampler "some"`,
		"ENDPOINT=http://h OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=2":   "from 0 to 1",
		"ENDPOINT=http://h OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=NaN": "from 0 to 1",
	} {
		x, err := open(envOf(env), "parley-gateway", "1")
		got := fmt.Sprint(err)
		if x != nil && x.spans != nil {
			got += x.spans.url
		}
		if x != nil && x.meter != nil {
			got += fmt.Sprint(" ", x.meter.url, " ", x.meter.timeout, " ", x.meter.every)
		}
		if !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s, want %s", env, got, want)
		}
	}
	x, err := open(envOf("ENDPOINT=http://h OTEL_SERVICE_NAME=n OTEL_RESOURCE_ATTRIBUTES=a=b,service.name=x"), "parley-gateway", "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []message{textOf("service.name", "n"), textOf("a", "b"), textOf("service.version", "1")} {
		if !bytes.Contains(x.spans.resource, want) || !bytes.Contains(x.meter.resource, want) {
			t.Errorf("%q in %q", want, x.spans.resource)
		}
	}
}

func envOf(text string) lookup {
	return func(name string) (string, bool) {
		for part := range strings.FieldsSeq(text) {
			if key, v, _ := strings.Cut(part, "="); key == name || "OTEL_EXPORTER_OTLP_"+key == name {
				return v, true
			}
		}
		return "", false
	}
}

// TestSampling decides which calls get spans.
func TestSampling(t *testing.T) {
	t.Parallel()
	yes, no := traceparent, strings.TrimSuffix(traceparent, "1")+"0"
	for _, c := range []struct {
		sampler, arg, header string
		want                 bool
	}{
		{"", "", "", true},
		{"", "", yes, true},
		{"", "", no, false},
		{"", "", strings.ToUpper(no), true}, // wrong, and so without a parent
		{"", "", "00-" + strings.Repeat("0", 32) + no[35:], true},
		{"", "", no + "-more", true},
		{"", "", "01" + no[2:] + "-more", false},
		{"", "", "ff" + no[2:], true},
		{"always_on", "", no, true},
		{"always_off", "", yes, false},
		{"parentbased_always_off", "", yes, true},
		{"parentbased_always_off", "", "", false},
		{"traceidratio", "1", no, true},
		{"traceidratio", "0", yes, false},
		{"traceidratio", "0.6", yes, true}, // its identity ends in 8448eb211c80319c
		{"traceidratio", "0.5", yes, false},
	} {
		env := map[string]string{"OTEL_TRACES_SAMPLER": c.sampler, "OTEL_TRACES_SAMPLER_ARG": c.arg}
		tr := openTo(t, &collector{}, env)
		got := tr.Start(http.Header{"Traceparent": {c.header}}, format.Chat, &provider.Provider{}, "s", callOf(t)).sampled
		if err := tr.Close(t.Context()); got != c.want || err != nil {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
}
