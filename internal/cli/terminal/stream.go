// Package terminal writes text for people: streams that may be terminals, pages with colors and tables, progress lines with
// the time that is left, numbers, and shell words.
//
// Text from a model never reaches a terminal as control characters.
//
// It does not decide what is shown: its callers do.
package terminal

import (
	"io"
	"sync"
	"unicode/utf8"
)

// Stream is a standard stream that several goroutines may write to. On a terminal it makes control characters
// visible: text from a model must not move the cursor, set the title, fill the clipboard or reverse text. Any
// other output gets every byte unchanged.
type Stream struct {
	Width func() int // current width of the terminal; 0 if it is not one
	// Escapes allows escape codes: colors, and a return to the start of the row.
	Escapes bool
	// Often means that another program shows the last line of progress: it gets one each second.
	Often bool

	mu    sync.Mutex
	w     io.Writer
	shown bool // the terminal's last row shows a refreshed line
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
	_, often := env("PARLEY_PROGRESS")
	return &Stream{w: w, Width: width, Escapes: width() > 0 && none == "" && term != "dumb" && obeys(w), Often: often}
}

// Write writes p, after it clears a refreshed line.
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

// Wipe clears the current row.
const Wipe = "\r\x1b[K"

// Refresh replaces the last refreshed row with as many parts as fit, in their order. It works only on streams
// with escapes.
func (s *Stream) Refresh(parts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Escapes {
		return
	}
	s.shown = true
	// A progress line that cannot be shown must not fail the run.
	_, _ = io.WriteString(s.w, Wipe+fitting(parts, max(1, s.Width()-1)))
}

// fitting joins the parts that fit into a width, in their order. A part that does not fit is left out; the first
// is cut.
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

// Clear removes a refreshed line.
func (s *Stream) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		_, _ = io.WriteString(s.w, Wipe)
	}
}

// writeRaw writes text to the terminal unchanged: text that was made harmless, and our own codes.
func (s *Stream) writeRaw(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		text = Wipe + text
	}
	_, err := io.WriteString(s.w, text)
	return err
}
