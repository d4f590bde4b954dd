package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lookup finds environment variables. Empty ones count as missing.
type lookup func(name string) (value string, ok bool)

func (l lookup) value(name string) string {
	v, ok := l(name)
	if !ok {
		return ""
	}
	return strings.TrimSpace(v)
}

// signal is a kind of data: TRACES or METRICS. The names of its variables have it.
type signal string

const (
	tracesSignal  signal = "TRACES"
	metricsSignal signal = "METRICS"
)

// variables are those of the exporter for one signal.
type variables struct {
	lookup
	signal
}

// exporter returns a variable of the exporter: the one for the signal, or else the one for everything.
func (v variables) exporter(name string) (variable, value string) {
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_" + string(v.signal) + "_", "OTEL_EXPORTER_OTLP_"} {
		if value := v.value(prefix + name); value != "" {
			return prefix + name, value
		}
	}
	return "", ""
}

// enabled reports whether the environment names a collector for the signal.
func (v variables) enabled() (bool, error) {
	name := "OTEL_" + string(v.signal) + "_EXPORTER"
	which := v.value(name)
	_, endpoint := v.exporter("ENDPOINT")
	return which != "none" && endpoint != "", oneOf(name, which, "otlp", "none")
}

// sender returns what sends the signal; nil: nothing does.
func (v variables) sender() (s *sender, err error) {
	if on, err := v.enabled(); !on || err != nil {
		return nil, err
	}
	s = &sender{}
	if s.url, err = v.url(); err != nil {
		return nil, err
	}
	if s.header, err = v.header(); err != nil {
		return nil, err
	}
	name, value := v.exporter("TIMEOUT")
	if s.timeout, err = milliseconds(name, value, 10*time.Second); err != nil {
		return nil, err
	}
	name, value = v.exporter("PROTOCOL")
	if err = oneOf(name, value, "http/protobuf"); err != nil {
		return nil, err
	}
	name, value = v.exporter("COMPRESSION")
	if err = oneOf(name, value, "none", "gzip"); err != nil {
		return nil, err
	}
	s.gzip = value == "gzip"
	s.client, err = v.client()
	return s, err
}

// milliseconds reads a duration.
func milliseconds(name, value string, otherwise time.Duration) (time.Duration, error) {
	if value == "" {
		return otherwise, nil
	}
	ms, err := strconv.ParseUint(value, 10, 31)
	if err != nil || ms == 0 {
		return 0, fmt.Errorf("%s: %q is not a number of milliseconds", name, value)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// oneOf checks a value that may be missing.
func oneOf(name, value string, known ...string) error {
	if value != "" && !slices.Contains(known, value) {
		return fmt.Errorf("%s: unknown %q; want %s", name, value, strings.Join(known, " or "))
	}
	return nil
}

// url returns where requests are sent.
func (v variables) url() (string, error) {
	name, value := v.exporter("ENDPOINT")
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s: want the URL of a collector, such as http://localhost:4318", name) // the value may hold a password
	}
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", strings.ToLower(string(v.signal)))
	}
	return u.String(), nil
}

// header returns the headers of requests.
func (v variables) header() (http.Header, error) {
	h := http.Header{"Content-Type": {"application/x-protobuf"}, "User-Agent": {"parley"}}
	name, value := v.exporter("HEADERS")
	list, err := pairs(name, value)
	for _, pair := range list {
		h.Set(pair[0], pair[1])
	}
	return h, err
}

// pairs reads "key=value,key=value". Values are percent-encoded. Errors show no value, which may be a key.
func pairs(variable, list string) (out [][2]string, err error) {
	for part := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || name == "" || strings.ContainsAny(name+value, "\r\n") {
			return nil, fmt.Errorf("%s: want name=value pairs with commas between them, and values percent-encoded", variable)
		}
		out = append(out, [2]string{name, value})
	}
	return out, nil
}

// client returns the client for requests, with the certificates that are set. It follows no redirects, which could
// take the headers elsewhere.
func (v variables) client() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the type is documented
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if name, file := v.exporter("CERTIFICATE"); file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("%s: %s holds no certificate", name, file)
		}
	}
	name, file := v.exporter("CLIENT_CERTIFICATE")
	other, key := v.exporter("CLIENT_KEY")
	if file != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(file, key)
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", name, other, err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// resource describes this process, with the attributes that the environment adds.
func (l lookup) resource(name, version string) (message, error) {
	const names, service = "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME"
	list, err := pairs(names, l.value(names))
	if err != nil {
		return nil, err
	}
	values := map[string]string{"service.name": name, "service.version": version}
	for _, pair := range list {
		values[pair[0]] = pair[1]
	}
	if v := l.value(service); v != "" {
		values["service.name"] = v
	}
	var m message
	for name, value := range values {
		m = m.bytes(1, textOf(name, value))
	}
	return m, nil
}

// sampler decides which calls get spans.
type sampler struct {
	ignoreParent bool
	below        uint64 // of 1<<63: the traces that are kept
}

const everything = 1 << 63

// samples decides from a trace's identity, as other programs do, so that a trace is kept as a whole.
func (s sampler) samples(p parent, remote bool) bool {
	if remote && !s.ignoreParent {
		return p.sampled
	}
	return binary.BigEndian.Uint64(p.trace[8:])>>1 < s.below
}

func (l lookup) sampler() (sampler, error) {
	const name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	v := l.value(name)
	kind, based := strings.CutPrefix(v, "parentbased_")
	s := sampler{ignoreParent: !based && v != "", below: everything}
	switch kind {
	case "", "always_on":
	case "always_off":
		s.below = 0
	case "traceidratio":
		text := l.value(argument)
		share := 1.0
		if text != "" {
			var err error
			if share, err = strconv.ParseFloat(text, 64); err != nil || !(share >= 0 && share <= 1) {
				return s, fmt.Errorf("%s: want a number from 0 to 1, not %q", argument, text)
			}
		}
		s.below = uint64(share * everything)
	default:
		return s, errors.New(name + ": unknown sampler " + strconv.Quote(v) + "; want always_on, always_off, traceidratio, or one of them after parentbased_")
	}
	return s, nil
}
