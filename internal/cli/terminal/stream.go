// Package terminal writes text for people: streams that may be terminals, pages with colours and
// tables, numbers, and words for a shell.
//
// Text that a model wrote never reaches a terminal as control characters.
//
// It is not for what is shown: the packages beside it decide that.
package terminal

import (
	"io"
	"sync"
	"unicode/utf8"
)

// Stream is a standard stream that several goroutines may write to. To a terminal
// it shows control characters instead of passing them on: a model's words must not
// move the cursor, set the title, fill the clipboard or turn text around. What is
// not a terminal gets every byte as it is.
type Stream struct {
	Width func() int // of the terminal, now; 0 for anything else
	// Escapes means that the terminal may be told more than text: colours, and to go back
	// to the start of a row.
	Escapes bool

	mu    sync.Mutex
	w     io.Writer
	shown bool // a refreshed line stands in the terminal's last row
}

// NewStream returns a stream that writes to w. terminal returns the width of w if it is a terminal,
// and 0 if it is not. A terminal gets escapes, unless NO_COLOR is set or TERM is dumb.
func NewStream(w io.Writer, env func(string) (string, bool), terminal func(stream any) int) *Stream {
	if w == nil {
		return &Stream{w: io.Discard, Width: func() int { return 0 }}
	}
	none, _ := env("NO_COLOR")
	term, _ := env("TERM")
	width := func() int { return terminal(w) }
	return &Stream{w: w, Width: width, Escapes: width() > 0 && none == "" && term != "dumb"}
}

// Write writes p, after wiping a refreshed line away.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Width() == 0 {
		return s.w.Write(p)
	}
	text := Safe(string(p))
	if s.shown {
		s.shown = false
		text = Wipe + text
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Wipe empties the row the cursor stands in.
const Wipe = "\r\x1b[K"

// Refresh puts a row in place of the last refreshed one: as many of its parts as fit
// beside each other, the first ones first. It is for streams with escapes only.
func (s *Stream) Refresh(parts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Escapes {
		return
	}
	s.shown = true
	// A progress line that cannot be shown is no reason to fail.
	_, _ = io.WriteString(s.w, Wipe+fitting(parts, max(1, s.Width()-1)))
}

// fitting joins the parts that fit into a width, in their order. One that does not fit is
// left out; the first is cut.
func fitting(parts []string, width int) string {
	row := ""
	for _, p := range parts {
		switch p = Safe(p); {
		case row == "":
			row = Cut(p, width)
		case utf8.RuneCountInString(row)+2+utf8.RuneCountInString(p) <= width:
			row += ", " + p
		}
	}
	return row
}

// Clear takes a refreshed line away.
func (s *Stream) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		_, _ = io.WriteString(s.w, Wipe)
	}
}

// obey writes what is to reach the terminal as it is: text that was made harmless, and
// our own codes.
func (s *Stream) obey(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		text = Wipe + text
	}
	_, err := io.WriteString(s.w, text)
	return err
}
