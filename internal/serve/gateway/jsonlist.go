package gateway

import (
	"net/http"
	"strings"

	"parley/internal/kit/sse"
)

// jsonList writes a stream of events as Gemini's API does without alt=sse: as a list of their data, which grows. What is recorded is the stream of
// events.
type jsonList struct {
	http.ResponseWriter
	listing bool // the answer is a stream
	split   sse.Splitter
	written []byte
	n       int
}

// Unwrap is for http.ResponseController.
func (l *jsonList) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (l *jsonList) WriteHeader(status int) {
	if h := l.Header(); strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		l.listing = true
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Del("Content-Length")
	}
	l.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (l *jsonList) Write(p []byte) (int, error) {
	if !l.listing {
		return l.ResponseWriter.Write(p)
	}
	l.split.Add(p)
	for raw, ok := l.split.Next(); ok; raw, ok = l.split.Next() {
		l.element(raw)
	}
	return len(p), l.flush()
}

func (l *jsonList) element(raw []byte) {
	data := sse.Parse(raw).Data
	if len(data) == 0 {
		return
	}
	l.written = append(append(l.written, "[,"[min(l.n, 1)]), data...)
	l.written = append(l.written, '\n')
	l.n++
}

func (l *jsonList) flush() error {
	b := l.written
	l.written = l.written[:0]
	if len(b) == 0 {
		return nil
	}
	_, err := l.ResponseWriter.Write(b)
	return err
}

// end ends the list. It is not called for an answer that was cut off.
func (l *jsonList) end() {
	if !l.listing {
		return
	}
	if l.split.Len() > 0 {
		l.element(l.split.Rest())
	}
	if l.n == 0 {
		l.written = append(l.written, '[')
	}
	l.written = append(l.written, ']', '\n')
	_ = l.flush() // the client may be gone
}
