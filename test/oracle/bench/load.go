package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// load makes calls at a steady rate, however long answers take, and measures each call from the time it was
// due, so that a slow server cannot hide its delay. Without a rate, each connection makes its next call as soon
// as it has the answer.
type load struct {
	addr  string // host:port
	rate  int    // calls a second; 0: as answers come
	lanes int    // connections
	takes time.Duration
	calls int // where there is no rate
	bytes int // of the prompt
}

// count is how many calls it makes.
func (l load) count() int {
	if l.rate == 0 {
		return l.calls
	}
	return int(float64(l.rate) * l.takes.Seconds())
}

// run returns the latencies, sorted.
func (l load) run() ([]time.Duration, error) {
	n := l.count()
	took := make([]time.Duration, n)
	errs := make([]error, l.lanes)
	var wg sync.WaitGroup
	start := time.Now().Add(200 * time.Millisecond)
	for lane := range l.lanes {
		wg.Go(func() { errs[lane] = l.lane(lane, start, took) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	took = took[n/10:] // the first are warming up
	slices.Sort(took)
	return took, nil
}

// lane makes every lanes-th call over one connection. It speaks HTTP by hand, so that the
// client costs as little as can be.
func (l load) lane(lane int, start time.Time, took []time.Duration) error {
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	prompt := strings.Repeat("What is to be done now? ", l.bytes/24)
	var out []byte
	for i := lane; i < len(took); i += l.lanes {
		due := time.Now()
		if l.rate > 0 {
			due = start.Add(time.Duration(i) * time.Second / time.Duration(l.rate))
			time.Sleep(time.Until(due))
		}
		out = request(out[:0], l.addr, fmt.Sprintf(`{"model":"any","messages":[{"role":"user","content":"%d: %s"}],"max_completion_tokens":200}`, i, prompt))
		if _, err := c.Write(out); err != nil {
			return err
		}
		if err := response(in); err != nil {
			return err
		}
		took[i] = time.Since(due)
	}
	return nil
}

func request(b []byte, host, body string) []byte {
	b = append(b, "POST /v1/chat/completions HTTP/1.1\r\nHost: "...)
	b = append(append(b, host...), "\r\nContent-Type: application/json\r\nAuthorization: Bearer bench\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	return append(append(b, "\r\n\r\n"...), body...)
}

// response reads an answer that says its length, and wants it to be a success.
func response(in *bufio.Reader) error {
	length := -1
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.Contains(line, []byte(" 200 ")) {
			return fmt.Errorf("answered %s", bytes.TrimSpace(line))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("an answer of unknown length")
	}
	_, err := io.CopyN(io.Discard, in, int64(length))
	return err
}

// streams opens n streams and waits for the first event of each. They last until done.
func streams(addr string, n int) (done func(), err error) {
	conns := make([]net.Conn, n)
	errs := make([]error, 64)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += len(errs) {
				conns[i], errs[w] = openStream(addr, i)
			}
		})
	}
	wg.Wait()
	done = func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

func openStream(addr string, i int) (net.Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"model":"any","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"%d: hold the line"}]}`, i)
	if _, err := c.Write(request(nil, addr, body)); err != nil {
		return c, err
	}
	buf, got := make([]byte, 4096), ""
	for !strings.Contains(got, "Well") {
		n, err := c.Read(buf)
		if err != nil {
			return c, fmt.Errorf("stream %d: %w: %s", i, err, got)
		}
		got += string(buf[:n])
	}
	return c, nil
}
