package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/read/training"
	"parley/internal/run/runfile"
)

// reading is a reader's way through the groups.
type reading struct {
	source *source
	cursor int
	filter training.Filter
	left   map[string]int // groups that were left out, by reason
}

// next reads the next selected group, or returns nil if no other is complete yet.
func (r *reading) next(ctx context.Context) (*training.Group, error) {
	for {
		g, left, at, err := r.source.after(ctx, r.cursor, r.filter)
		if at == 0 || err != nil {
			return nil, err
		}
		r.cursor = at
		if g != nil {
			return g, nil
		}
		if r.left == nil {
			r.left = map[string]int{}
		}
		r.left[left]++
	}
}

// groupHead describes a group before its rows.
type groupHead struct {
	Cursor   string `json:"cursor"`
	GroupID  string `json:"group_id"`
	Size     int    `json:"size"`     // episodes that were planned
	Episodes int    `json:"episodes"` // that are in it
	// Closed says why it has fewer episodes than planned.
	Closed string `json:"closed,omitempty"`
}

// put writes a group as one JSON object, row by row.
func (r *reading) put(w io.Writer, g *training.Group) error {
	head := groupHead{Cursor: r.source.formatCursor(r.cursor), GroupID: g.ID, Size: g.Size, Episodes: len(g.Members), Closed: g.Short}
	if n := g.Failed(); n > 0 && head.Closed == "" {
		head.Closed = fmt.Sprintf("%d of %d failed", n, g.Size)
	}
	b, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(b[:len(b)-1], `,"rows":[`...)); err != nil {
		return err
	}
	first := true
	for _, m := range g.Members {
		for i := range m.Rows {
			b, err := m.Rows[i].JSON()
			if err != nil {
				return err
			}
			if !first {
				b = append([]byte{','}, b...)
			}
			first = false
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	_, err = io.WriteString(w, "]}")
	return err
}

// tail follows the groups of an answer, and comes between and after those of a stream.
type tail struct {
	Cursor string         `json:"cursor"`
	State  State          `json:"state"`
	Reason string         `json:"reason,omitempty"`
	Left   map[string]int `json:"left,omitempty"`
	// Done means that nothing follows unless somebody starts the run again.
	Done bool `json:"done"`
}

// wait returns the next group, or nil if no group becomes complete before until, or no other will.
func (s *Server) wait(ctx context.Context, r *reading, until <-chan time.Time) (g *training.Group, t tail, err error) {
	for {
		changed := s.source.watch()
		t.State, t.Reason = s.player.status() // before the read: a run that is over has written everything
		if g, err = r.next(ctx); g != nil || err != nil {
			return g, t, err
		}
		t.Cursor, t.Left, t.Done = r.source.formatCursor(r.cursor), r.left, t.State.over()
		if t.Done {
			return nil, t, nil
		}
		select {
		case <-changed:
		case <-until:
			return nil, t, nil
		case <-s.stopping:
			return nil, t, nil
		case <-ctx.Done():
			return nil, t, context.Cause(ctx)
		}
	}
}

// Limits of an answer; the client continues at its cursor.
const (
	maxGroups = 10_000
	maxBytes  = 32 << 20
)

// groups answers with the groups after a cursor. Without any, it waits for a while.
func (s *Server) groups(w http.ResponseWriter, r *http.Request) {
	q, err := s.readQuery(r)
	if err != nil {
		s.answerError(w, err)
		return
	}
	s.source.reached(q.cursor) // whoever sends it has what was before
	in := &q.reading
	g, t, err := s.wait(r.Context(), in, time.After(q.wait))
	if err != nil {
		s.answerError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := s.newDeadlineWriter(w)
	before := `{"groups":[`
	for n := 0; g != nil; {
		if _, err = io.WriteString(out, before); err == nil {
			err = in.put(out, g)
		}
		before = ","
		if n++; err != nil || n == q.limit || out.wrote >= maxBytes {
			break
		}
		if g, err = in.next(r.Context()); err != nil {
			break
		}
	}
	if err != nil {
		abortAnswer()
	}
	if out.wrote == 0 {
		_, _ = io.WriteString(out, before)
	} else {
		t = tail{State: t.State, Reason: t.Reason, Left: in.left, Cursor: s.source.formatCursor(in.cursor)}
	}
	b, err := json.Marshal(t)
	if err != nil {
		abortAnswer()
	}
	_, _ = out.Write(append(append([]byte("],"), b[1:]...), '\n')) // the client may come back with the same cursor
}

// heartbeat is how often a stream shows that it is alive.
const heartbeat = 15 * time.Second

// stream writes the groups after a cursor, one per line, as they become complete, until the run is over.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	q, err := s.readQuery(r)
	if err != nil {
		s.answerError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := s.newDeadlineWriter(w)
	if out.flush() != nil { // a client learns at once that it is served
		return
	}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		s.source.reached(q.cursor)
		g, t, err := s.wait(r.Context(), &q.reading, ticker.C)
		if err == nil && g != nil {
			err = q.put(out, g)
		} else if err == nil {
			var b []byte
			if b, err = json.Marshal(t); err == nil {
				_, err = out.Write(b)
			}
		}
		if err == nil {
			_, err = io.WriteString(out, "\n")
		}
		if err == nil {
			err = out.flush()
		}
		if err != nil {
			abortAnswer()
		}
		if g == nil && (t.Done || s.isStopping()) {
			return
		}
	}
}

// isStopping reports whether the server stops.
func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// answerError answers with an error before anything was written.
func (s *Server) answerError(w http.ResponseWriter, err error) {
	var bad *queryError
	switch {
	case errors.As(err, &bad):
		fault(w, http.StatusBadRequest, err)
	case errors.Is(err, errForeign):
		fault(w, http.StatusConflict, err)
	default:
		fault(w, http.StatusInternalServerError, err)
	}
}

// source is the run file as readers see it: which groups are complete, by cursor. It reads the file only when
// a reader finds nothing new.
type source struct {
	open   func() (*runfile.Store, error)
	hasRun atomic.Bool // the file has a run

	mu     sync.Mutex // guards the following fields
	src    *runfile.Store
	groups training.Index
	// ahead is how many groups may be begun and not read; 0: any number. group is the plan's size of groups. read is up to
	// where clients have read, and control is of the run that is played.
	ahead, group, read int
	control            Control

	wakeMu sync.Mutex
	wake   chan struct{} // closed at the next change
}

// changed wakes every waiting reader. It never blocks.
func (f *source) changed() {
	f.wakeMu.Lock()
	defer f.wakeMu.Unlock()
	close(f.wake)
	f.wake = make(chan struct{})
}

// watch returns a channel that is closed at the next change. Read the source after this call.
func (f *source) watch() <-chan struct{} {
	f.wakeMu.Lock()
	defer f.wakeMu.Unlock()
	return f.wake
}

// update reads what is new, and reports whether there is a run. source.mu is held.
func (f *source) update(ctx context.Context) (there bool, err error) {
	if !f.hasRun.Load() {
		return false, nil
	}
	if f.src == nil {
		if f.src, err = f.open(); err != nil {
			return false, err
		}
	}
	planned, _ := f.groups.Count()
	err = f.groups.Update(ctx, f.src)
	if now, _ := f.groups.Count(); now != planned {
		f.allowGroups()
	}
	if errors.Is(err, training.ErrNoRun) { // it is not written yet
		return false, nil
	}
	return true, err
}

// begun notes that a run is played.
func (f *source) begun(c Control) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.control = c
	f.allowGroups()
}

// reached notes that a client has read everything up to a cursor.
func (f *source) reached(cursor int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cursor > f.read {
		f.read = cursor
		f.allowGroups()
	}
}

// groupsRead returns how many groups were read.
func (f *source) groupsRead() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.groups.Before(f.read)
}

// allowGroups begins as many groups as may be ahead of those that were read. source.mu is held.
func (f *source) allowGroups() {
	if f.ahead <= 0 || f.control == nil {
		return
	}
	n := f.groups.Before(f.read) + f.ahead
	until, ok := f.groups.Bound(n)
	if !ok { // the plan is not written yet
		until = n * f.group
	}
	f.control.Until(until)
}

// after reads the first group that became complete after a cursor. at is its cursor, or 0 if no other is
// complete yet. If the filter drops it, left says why.
func (f *source) after(ctx context.Context, cursor int, filter training.Filter) (g *training.Group, left string, at int, err error) {
	f.mu.Lock()
	c, ok := f.groups.After(cursor)
	if !ok {
		if _, err := f.update(ctx); err != nil {
			f.mu.Unlock()
			return nil, "", 0, err
		}
		c, ok = f.groups.After(cursor)
	}
	src := f.src
	f.mu.Unlock()
	if !ok {
		return nil, "", 0, nil
	}
	g, left, err = f.groups.Read(ctx, src, c, filter)
	return g, left, c.Cursor, err
}

// run names the run, or is empty if there is none yet.
func (f *source) run(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if there, err := f.update(ctx); err != nil || !there {
		return "", err
	}
	return f.groups.Run(), nil
}

// count returns how many groups there are and how many are complete, up to which cursor.
func (f *source) count(ctx context.Context) (planned, complete int, last string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if there, err := f.update(ctx); err != nil || !there {
		return 0, 0, "", err
	}
	planned, complete = f.groups.Count()
	return planned, complete, f.formatCursorLocked(f.groups.Seen()), nil
}

// formatCursorLocked writes a cursor: the run and a position in its journal, so that a cursor of another run is recognized.
// The start is "".
func (f *source) formatCursorLocked(cursor int) string {
	if cursor == 0 {
		return ""
	}
	return f.groups.Run() + "." + strconv.Itoa(cursor)
}

// formatCursor is formatCursorLocked for callers that do not hold source.mu.
func (f *source) formatCursor(cursor int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.formatCursorLocked(cursor)
}

// errForeign means that a cursor is not from this run.
var errForeign = errors.New("cursor")

// parseCursor reads a cursor.
func (f *source) parseCursor(ctx context.Context, text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	i := strings.LastIndexByte(text, '.')
	n, err := strconv.Atoi(text[i+1:])
	if i < 0 || err != nil || n < 1 {
		return 0, fmt.Errorf("%w %.80q is not valid: send back a cursor that you were given, or leave it out to begin at the start", errForeign, text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	there, err := f.update(ctx)
	switch {
	case err != nil:
		return 0, err
	case !there:
		return 0, fmt.Errorf("%w %.80q: there is no run yet: leave it out", errForeign, text)
	case text[:i] != f.groups.Run() || n > f.groups.Seen():
		return 0, fmt.Errorf("%w %.80q is not of this run, which is %s: leave it out to begin at the start", errForeign, text, f.groups.Run())
	}
	return n, nil
}

func (f *source) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.src == nil {
		return nil
	}
	return f.src.Close()
}

// query is a reader's request.
type query struct {
	reading
	limit int
	wait  time.Duration
}

// queryError is a query that cannot be understood.
type queryError struct{ key, what string }

func (e *queryError) Error() string { return e.key + ": " + e.what }

// maxWait is how long an answer may wait.
const maxWait = 60 * time.Second

// queryKeys returns the keys of a query.
func queryKeys() []string {
	return []string{"cursor", "limit", "wait", "status", "trainable", "whole", "min_reward", "unequal", "weight_version", "max_lag"}
}

// readQuery reads a reader's request.
func (s *Server) readQuery(r *http.Request) (*query, error) {
	values := r.URL.Query()
	for key := range values {
		if !slices.Contains(queryKeys(), key) {
			return nil, &queryError{short(key), "is not known: use " + strings.Join(queryKeys(), ", ")}
		}
	}
	q := &query{limit: 64, reading: reading{source: s.source}}
	f, read := &q.filter, queryReader{get: values.Get}
	read.number("limit", &q.limit, 1, maxGroups)
	seconds := 0
	read.number("wait", &seconds, 0, int(maxWait/time.Second))
	q.wait = time.Duration(seconds) * time.Second
	read.boolean("trainable", &f.Trainable)
	read.boolean("whole", &f.Whole)
	read.boolean("unequal", &f.Unequal)
	if reward := 0.0; values.Get("min_reward") != "" {
		read.decimal("min_reward", &reward)
		f.MinReward = &reward
	}
	if version := 0; values.Get("weight_version") != "" {
		read.number("weight_version", &version, 0, 1<<53)
		f.Version = &version
	}
	read.number("max_lag", &f.Lag, 0, 1<<53)
	read.statuses("status", &f.Statuses)
	if f.Version == nil && values.Get("max_lag") == "" {
		s.limitStaleness(f)
	}
	if f.Version == nil && values.Get("max_lag") != "" {
		f.Version = s.version.Load()
	}
	if read.err == nil && f.Version == nil && values.Get("max_lag") != "" && f.Lag > 0 {
		read.fail("max_lag", "needs weight_version, or POST /v1/weights before")
	}
	if read.err != nil {
		return nil, read.err
	}
	var err error
	q.cursor, err = s.source.parseCursor(r.Context(), values.Get("cursor"))
	return q, err
}

// limitStaleness sets the run's own limit on the age of weights, once a trainer has said which it has.
func (s *Server) limitStaleness(f *training.Filter) {
	if s.cfg.Staleness != nil {
		f.Version, f.Lag = s.version.Load(), *s.cfg.Staleness
	}
}

// queryReader reads values until one is wrong.
type queryReader struct {
	get func(key string) string
	err error
}

func (a *queryReader) fail(key, format string, args ...any) {
	if a.err == nil {
		a.err = &queryError{key, fmt.Sprintf(format, args...)}
	}
}

func (a *queryReader) number(key string, into *int, low, high int) {
	text := a.get(key)
	if text == "" {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		a.fail(key, "%.40q: want a number from %d to %d", text, low, high)
		return
	}
	*into = n
}

func (a *queryReader) decimal(key string, into *float64) {
	x, err := strconv.ParseFloat(a.get(key), 64)
	if err != nil || math.IsNaN(x) {
		a.fail(key, "%.40q: want a number", a.get(key))
		return
	}
	*into = x
}

func (a *queryReader) boolean(key string, into *bool) {
	switch text := a.get(key); text {
	case "", "false", "0":
	case "true", "1":
		*into = true
	default:
		a.fail(key, "%.40q: want true or false", text)
	}
}

func (a *queryReader) statuses(key string, into *[]training.Status) {
	text := a.get(key)
	if text == "" {
		return
	}
	for name := range strings.SplitSeq(text, ",") {
		s, err := training.ParseStatus(name)
		if err != nil {
			a.fail(key, "%v", err)
			return
		}
		*into = append(*into, s)
	}
}
