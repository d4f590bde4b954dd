package cli

import (
	"io"
	"sync"
	"unicode/utf8"
)

// stream is a standard stream that several goroutines may write to. To a terminal
// it shows control characters instead of passing them on: a model's words must not
// move the cursor, set the title, fill the clipboard or turn text around. What is
// not a terminal gets every byte as it is.
type stream struct {
	width func() int // of the terminal, now; 0 for anything else
	// escapes means that the terminal may be told more than text: colours, and to go back
	// to the start of a row.
	escapes bool

	mu    sync.Mutex
	w     io.Writer
	shown bool // a refreshed line stands in the terminal's last row
}

// newStream returns a stream that writes to w. terminal returns the width of w if it is a terminal,
// and 0 if it is not. A terminal gets escapes, unless NO_COLOR is set or TERM is dumb.
func newStream(w io.Writer, env func(string) (string, bool), terminal func(stream any) int) *stream {
	if w == nil {
		return &stream{w: io.Discard, width: func() int { return 0 }}
	}
	none, _ := env("NO_COLOR")
	term, _ := env("TERM")
	width := func() int { return terminal(w) }
	return &stream{w: w, width: width, escapes: width() > 0 && none == "" && term != "dumb"}
}

// Write writes p, after wiping a refreshed line away.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.width() == 0 {
		return s.w.Write(p)
	}
	text := safe(string(p))
	if s.shown {
		s.shown = false
		text = wipe + text
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// wipe empties the row the cursor stands in.
const wipe = "\r\x1b[K"

// refresh puts a row in place of the last refreshed one: as many of its parts as fit
// beside each other, the first ones first. It is for streams with escapes only.
func (s *stream) refresh(parts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.escapes {
		return
	}
	s.shown = true
	// A progress line that cannot be shown is no reason to fail.
	_, _ = io.WriteString(s.w, wipe+fitting(parts, max(1, s.width()-1)))
}

// fitting joins the parts that fit into a width, in their order. One that does not fit is
// left out; the first is cut.
func fitting(parts []string, width int) string {
	row := ""
	for _, p := range parts {
		switch p = safe(p); {
		case row == "":
			row = cut(p, width)
		case utf8.RuneCountInString(row)+2+utf8.RuneCountInString(p) <= width:
			row += ", " + p
		}
	}
	return row
}

// clear takes a refreshed line away.
func (s *stream) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		_, _ = io.WriteString(s.w, wipe)
	}
}

// obey writes what is to reach the terminal as it is: text that was made harmless, and
// our own codes.
func (s *stream) obey(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		text = wipe + text
	}
	_, err := io.WriteString(s.w, text)
	return err
}
