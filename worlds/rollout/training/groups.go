package training

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// reading is a reader's way through the groups.
type reading struct {
	source *source
	cursor int
	filter Filter
	left   map[string]int // groups that were left out, by reason
}

// next reads the next selected group, or returns nil if no other is complete yet.
func (r *reading) next(ctx context.Context) (*Group, error) {
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
func (r *reading) put(w io.Writer, g *Group) error {
	head := groupHead{Cursor: r.source.write(r.cursor), GroupID: g.ID, Size: g.Size, Episodes: len(g.Members), Closed: g.Short}
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
func (s *Server) wait(ctx context.Context, r *reading, until <-chan time.Time) (g *Group, t tail, err error) {
	for {
		changed := s.source.watch()
		t.State, t.Reason = s.player.status() // before the read: a run that is over has written everything
		if g, err = r.next(ctx); g != nil || err != nil {
			return g, t, err
		}
		t.Cursor, t.Left, t.Done = r.source.write(r.cursor), r.left, t.State.over()
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
	q, err := s.query(r)
	if err != nil {
		s.wrong(w, err)
		return
	}
	s.source.reached(q.cursor) // whoever sends it has what was before
	in := &q.reading
	g, t, err := s.wait(r.Context(), in, time.After(q.wait))
	if err != nil {
		s.wrong(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := s.slow(w)
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
		cut()
	}
	if out.wrote == 0 {
		_, _ = io.WriteString(out, before)
	} else {
		t = tail{State: t.State, Reason: t.Reason, Left: in.left, Cursor: s.source.write(in.cursor)}
	}
	b, err := json.Marshal(t)
	if err != nil {
		cut()
	}
	_, _ = out.Write(append(append([]byte("],"), b[1:]...), '\n')) // the client may come back with the same cursor
}

// beat is how often a stream shows that it is alive.
const beat = 15 * time.Second

// stream writes the groups after a cursor, one per line, as they become complete, until the run is over.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	q, err := s.query(r)
	if err != nil {
		s.wrong(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := s.slow(w)
	if out.flush() != nil { // a client learns at once that it is served
		return
	}
	ticker := time.NewTicker(beat)
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
			cut()
		}
		if g == nil && (t.Done || s.stops()) {
			return
		}
	}
}

// stops reports whether the server stops.
func (s *Server) stops() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// wrong answers with an error before anything was written.
func (s *Server) wrong(w http.ResponseWriter, err error) {
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
