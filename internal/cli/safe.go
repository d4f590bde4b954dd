package cli

import (
	"io"
	"sync"
	"unicode/utf8"

	"parley/world"
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

// newStream makes a stream of w. A terminal gets escapes, unless NO_COLOR is set or it is
// a dumb one.
func newStream(w io.Writer, s *State) *stream {
	if w == nil {
		return &stream{w: io.Discard, width: func() int { return 0 }}
	}
	none, _ := s.Env("NO_COLOR")
	term, _ := s.Env("TERM")
	width := func() int { return s.Terminal(w) }
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

// cut shortens a text to so many characters, with … for what is left out.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(0, width-1)]) + "…"
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

// safe writes what a terminal could obey as \u001b and the like.
func safe(text string) string { return world.Visible(text) }
