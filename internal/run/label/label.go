// Package label keeps what people say about the episodes of a run: tags, verdicts and notes. ReadTable reads what they wrote
// into a table.
//
// Labels are in a file beside the run file, never in it. Each line of the file is a JSON object that adds a label or
// removes one, and lines are only appended: several processes can label one run, and nothing is lost. A line that
// cannot be read is skipped and counted.
//
// What it is not for: it does not know whether an episode or a call exists.
package label

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/kit/files"
	"parley/world"
)

// Suffix is added to the name of a run file to name the file with its labels.
const Suffix = "-labels"

// Verdict is what a person thinks of an episode or a message.
type Verdict string

// The verdicts.
const (
	Pass   Verdict = "pass"
	Fail   Verdict = "fail"
	unsure Verdict = "unsure"
)

// Verdicts lists the verdicts.
func Verdicts() []Verdict { return []Verdict{Pass, Fail, unsure} }

// Label is what a person said about an episode, or about one message of it. It has a tag, a verdict or a note, or
// several of them.
type Label struct {
	ID      string    `json:"id"`
	Run     string    `json:"run"` // the id of the run
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"` // the person, if they gave a name
	Episode int       `json:"episode"`
	Call    string    `json:"call,omitempty"` // of the message, such as 3:0; empty: the whole episode
	Tag     string    `json:"tag,omitempty"`
	Verdict Verdict   `json:"verdict,omitempty"`
	Note    string    `json:"note,omitempty"`
}

// line is a line of the file: a label, or the id of one that is removed.
type line struct {
	Label
	Removed string `json:"removed,omitempty"`
}

// The limits of a label and of the file. The texts are counted in bytes.
const (
	maxWord = 200 // of a tag, a name, a call
	maxNote = 20_000
	maxFile = 64 << 20
)

// ErrInvalid means that a label cannot be added as it is.
var ErrInvalid = errors.New("the label cannot be added")

// check returns what is wrong with a label.
func (l *Label) check() error {
	for _, c := range []struct {
		name, text string
		limit      int
	}{{"tag", l.Tag, maxWord}, {"name", l.By, maxWord}, {"call", l.Call, maxWord}, {"note", l.Note, maxNote}} {
		switch {
		case len(c.text) > c.limit:
			return fmt.Errorf("%w: the %s has %d bytes; at most %d are allowed", ErrInvalid, c.name, len(c.text), c.limit)
		case !utf8.ValidString(c.text):
			return fmt.Errorf("%w: the %s is not UTF-8", ErrInvalid, c.name)
		case c.limit == maxWord && strings.ContainsFunc(c.text, unicode.IsControl):
			return fmt.Errorf("%w: the %s has a control character", ErrInvalid, c.name)
		}
	}
	switch {
	case l.Verdict != "" && l.Verdict.value() < 0 && l.Verdict != unsure:
		return fmt.Errorf("%w: unknown verdict %q; want one of %v", ErrInvalid, l.Verdict, Verdicts())
	case l.Episode < 0:
		return fmt.Errorf("%w: there is no episode %d", ErrInvalid, l.Episode)
	case strings.Trim(l.Call, "0123456789./:") != "":
		return fmt.Errorf("%w: %q is not the name of a call, such as 3:0", ErrInvalid, l.Call)
	case Prefix+l.Tag == VerdictScore:
		return fmt.Errorf("%w: the tag %q is the name of a score; use another word", ErrInvalid, l.Tag)
	case l.Tag == "" && l.Verdict == "" && l.Note == "":
		return fmt.Errorf("%w: a label needs a tag, a verdict or a note", ErrInvalid)
	}
	return nil
}

// value returns the verdict as a number, or -1 if it is not known.
func (v Verdict) value() float64 {
	switch v {
	case Pass:
		return 1
	case Fail:
		return 0
	default:
		return -1
	}
}

// Add adds labels to a run file's labels: all of them, or none. It sets their IDs, and the time of those that have none.
func Add(run string, labels ...Label) error {
	lines := make([]line, len(labels))
	for i, l := range labels {
		l.trim()
		if err := l.check(); err != nil {
			return err
		}
		l.ID = rand.Text()
		if l.At.IsZero() {
			l.At = time.Now().UTC()
		}
		lines[i] = line{Label: l}
	}
	return put(files.Beside(run, Suffix), lines...)
}

// trim removes the space around the texts of a label.
func (l *Label) trim() {
	l.Tag, l.By, l.Note = strings.TrimSpace(l.Tag), strings.TrimSpace(l.By), strings.TrimSpace(l.Note)
}

// Remove removes a label of a run file's labels.
func Remove(run string, l Label) error {
	return put(files.Beside(run, Suffix), line{Label: Label{Run: l.Run, Episode: l.Episode, At: time.Now().UTC()}, Removed: l.ID})
}

// put appends lines. They are written at once, so that lines of several processes do not mix.
func put(path string, lines ...line) (err error) {
	var b []byte
	for _, l := range lines {
		one, err := json.Marshal(l)
		if err != nil {
			return err
		}
		b = append(append(b, one...), '\n')
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("label: %s is not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("label: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("label: %w", err)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size()+int64(len(b)) > maxFile {
		return fmt.Errorf("%s is full: it has %d bytes", path, info.Size())
	}
	if last := make([]byte, 1); info.Size() > 0 {
		if _, err := f.ReadAt(last, info.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' { // a process was killed while it wrote
			b = append([]byte{'\n'}, b...)
		}
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Sync()
}

// Read reads the labels of a run from the file beside its run file. id is the id of the run: labels of other runs are
// left out. Without a file there are no labels.
func Read(ctx context.Context, run, id string) (*Set, error) {
	b, err := files.Read(ctx, files.Beside(run, Suffix), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &Set{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("label: %w", err)
	}
	s := &Set{}
	removed := map[string]bool{}
	var all []Label
	for text := range strings.Lines(string(b)) {
		if strings.TrimSpace(text) == "" {
			continue
		}
		var l line
		switch err := json.Unmarshal([]byte(text), &l); {
		case err == nil && l.Removed != "":
			removed[l.Removed] = true
		case err != nil || l.check() != nil:
			s.Damaged++
		case l.Run == id:
			all = append(all, l.Label)
		}
	}
	for _, l := range all {
		if !removed[l.ID] {
			s.Add(l)
		}
	}
	return s, nil
}

// Set is the labels of a run.
type Set struct {
	All     []Label // in the order of the file
	Damaged int     // lines that could not be read

	of map[int][]Label // by episode
}

// Add adds a label to the set, not to the file.
func (s *Set) Add(l Label) {
	if s.of == nil {
		s.of = map[int][]Label{}
	}
	s.All = append(s.All, l)
	s.of[l.Episode] = append(s.of[l.Episode], l)
}

// Of returns the labels of an episode and of its messages.
func (s *Set) Of(episode int) []Label { return s.of[episode] }

// MaxTags is how many tags lists have, and how many become scores.
const MaxTags = 50

// Tags returns the MaxTags tags that most labels have, in alphabetical order. left is how many others there are.
func (s *Set) Tags() (tags []string, left int) { return s.tags(func(int) bool { return true }) }

// tags does the same for the labels of some episodes.
func (s *Set) tags(of func(episode int) bool) (tags []string, left int) {
	used := map[string]int{}
	for _, l := range s.All {
		if l.Tag != "" && of(l.Episode) {
			used[l.Tag]++
		}
	}
	tags = slices.SortedFunc(maps.Keys(used), func(a, b string) int { return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a, b)) })
	left = max(0, len(tags)-MaxTags)
	tags = tags[:len(tags)-left]
	slices.Sort(tags)
	return tags, left
}

// Prefix is what the names of scores that are made of labels begin with.
const Prefix = "label/"

// VerdictScore is the name of the score that is made of verdicts.
const VerdictScore = Prefix + "verdict"

// Verdict returns the verdict of an episode: 1 for pass and 0 for fail, and the mean if several people gave one. Unsure
// does not count, and neither do verdicts on messages. ok is false if there is none.
func (s *Set) Verdict(episode int) (v float64, ok bool) {
	sum, n := 0.0, 0
	for _, l := range s.of[episode] {
		if v := l.Verdict.value(); v >= 0 && l.Call == "" {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(max(1, n)), n > 0
}

// Scores returns labels as scores of whole episodes, by episode, for a run with the given number of episodes: labels of
// others are left out, because anybody can write the file. Only episodes with a label have scores: nobody looked at the
// rest.
//
// A tag is 1 if the episode or one of its messages has it, and 0 if not. Only the MaxTags tags that most labels have
// become scores; left is how many others there are.
func (s *Set) Scores(episodes int) (scores map[int][]world.Score, left int) {
	exists := func(episode int) bool { return episode < episodes }
	tags, left := s.tags(exists)
	scores = map[int][]world.Score{}
	for episode, labels := range s.of {
		if !exists(episode) {
			continue
		}
		if v, ok := s.Verdict(episode); ok {
			scores[episode] = append(scores[episode], world.Score{Name: VerdictScore, Value: v})
		}
		has := map[string]bool{}
		for _, l := range labels {
			has[l.Tag] = true
		}
		for _, tag := range tags {
			value := 0.0
			if has[tag] {
				value = 1
			}
			scores[episode] = append(scores[episode], world.Score{Name: Prefix + tag, Value: value})
		}
	}
	return scores, left
}
