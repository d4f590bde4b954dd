package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley/internal/ask/wire/fault"
)

const (
	firstWait = 5 * time.Second  // before the second attempt at a request; later ones double it
	maxWait   = 30 * time.Second // between attempts
)

// sender sends requests with one kind of data to the collector.
type sender struct {
	url     string
	header  http.Header
	timeout time.Duration // of one attempt
	gzip    bool
	client  *http.Client
	failing func(error) // is told of failed attempts
	last    bool        // the exporter is being closed: Close tells of failures
}

// export sends spans or metrics of a resource in one request, and tries again after failures that
// may pass, until ctx or the time ends.
func (s *sender) export(ctx context.Context, limit time.Duration, resource message, data []message) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	body, err := s.body(resource, data)
	if err != nil {
		return err
	}
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		after, err := s.post(ctx, body)
		if err != nil && !s.last {
			s.failing(err)
		}
		if err == nil || after == never {
			return err
		}
		select {
		case <-time.After(max(wait, after)):
		case <-ctx.Done():
			return err
		}
	}
}

// body returns a request. OTLP numbers the fields of requests with spans and with metrics in the same way.
func (s *sender) body(resource message, data []message) ([]byte, error) {
	scope := message(nil).bytes(1, message(nil).text(1, "parley")).all(2, data)
	m := message(nil).bytes(1, message(nil).bytes(1, resource).bytes(2, scope))
	if !s.gzip {
		return m, nil
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(m)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// never is the time to wait after a failure that does not pass.
const never = -1

// post sends a request once. After a failure it returns how long the collector wants to be left alone.
func (s *sender) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return never, err
	}
	req.Header = s.header.Clone()
	if s.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := s.client.Do(req)
	if err != nil {
		return 0, err
	}
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // so that the connection can be used again
	_ = res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fault.RetryAfter(res.Header, time.Now()), fmt.Errorf("the collector answered %s", res.Status)
	default:
		return never, fmt.Errorf("the collector answered %s", res.Status)
	}
}
