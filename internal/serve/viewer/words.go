package viewer

import (
	"html/template"

	"parley/internal/run/results"
)

// Words is a text that somebody said.
type Words struct {
	Text string
	HTML template.HTML // the text, formatted; empty: it is shown as it is
	Why  string        // why it is not formatted, if that was asked for
	Cut  bool          // it was longer
}

// newWords returns a text, formatted if f is not nil. Data for programs stays as it is.
func newWords(f *formatter, text string) Words {
	w := Words{Text: text}
	if !results.IsData(text) {
		w.HTML, w.Why = f.Format(text)
	}
	return w
}
