package label

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/files"
	"parley/internal/kit/text"
	"parley/world"
)

// row is a row of a table: the columns of the table labels that export writes.
type row struct {
	Run     string    `json:"run"`
	Episode *int      `json:"episode"`
	Call    string    `json:"call"`
	Tag     string    `json:"tag"`
	Verdict Verdict   `json:"verdict"`
	Note    string    `json:"note"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

// ReadTable reads labels from a CSV file with a line of names, or from JSON lines. id is the run that they are for, with
// its number of episodes. Errors name the line: a table with an error has no labels.
func ReadTable(ctx context.Context, path, id string, episodes int) ([]Label, error) {
	b, err := files.Read(ctx, path, maxFile)
	if err != nil {
		return nil, err
	}
	var rows iter.Seq2[int, func() ([]byte, error)]
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		rows = csvRows(b)
	case ".jsonl", ".ndjson":
		rows = jsonRows(b)
	default:
		return nil, fmt.Errorf("%s: the name ends in %q; want .csv or .jsonl", path, ext)
	}
	var all []Label
	for n, text := range rows {
		raw, err := text()
		var l Label
		if err == nil {
			l, err = readRow(raw, id, episodes)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: has no labels", path)
	}
	return all, nil
}

// readRow makes a label of a row, which is a JSON object.
func readRow(raw []byte, id string, episodes int) (Label, error) {
	var r row
	if err := world.DecodeStrict(raw, &r); err != nil {
		return Label{}, err
	}
	switch {
	case r.Episode == nil:
		return Label{}, errors.New("the episode is missing")
	case *r.Episode >= episodes:
		return Label{}, fmt.Errorf("there is no episode %d: the run has %d, and the first is 0", *r.Episode, episodes)
	case r.Run != "" && r.Run != id:
		return Label{}, fmt.Errorf("the label is of the run %.80q, not of %s", r.Run, id)
	}
	l := Label{Run: id, At: r.At, By: r.By, Episode: *r.Episode, Call: r.Call, Tag: r.Tag, Verdict: r.Verdict, Note: r.Note}
	l.trim()
	return l, l.check()
}

// jsonRows yields the lines of a file with their numbers.
func jsonRows(b []byte) iter.Seq2[int, func() ([]byte, error)] {
	return func(yield func(int, func() ([]byte, error)) bool) {
		n := 0
		for line := range bytes.Lines(b) {
			n++
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(n, func() ([]byte, error) { return line, nil }) {
				return
			}
		}
	}
}

// csvRows yields the rows of a CSV file as JSON objects, with their lines. Empty cells are left out.
func csvRows(b []byte) iter.Seq2[int, func() ([]byte, error)] {
	return func(yield func(int, func() ([]byte, error)) bool) {
		r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(b, []byte("\ufeff")))) // as spreadsheets write it
		names, err := r.Read()
		if err == nil {
			err = checkNames(names)
		}
		if err != nil {
			yield(1, func() ([]byte, error) { return nil, plainCSV(err) })
			return
		}
		for {
			cells, err := r.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			line := 0
			if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
				line = wrong.Line
			} else if err == nil {
				line, _ = r.FieldPos(0)
			}
			if !yield(line, func() ([]byte, error) { return object(names, cells, plainCSV(err)) }) || err != nil {
				return
			}
		}
	}
}

// checkNames checks the first line of a CSV file.
func checkNames(names []string) error {
	allowed := text.FieldNames(&row{})
	for i, name := range names {
		switch {
		case !slices.Contains(allowed, name):
			return fmt.Errorf("unknown column %.60q; want some of %s", name, strings.Join(allowed, ", "))
		case slices.Contains(names[:i], name):
			return fmt.Errorf("the column %s is there twice", name)
		}
	}
	if !slices.Contains(names, "episode") {
		return errors.New("there is no column episode")
	}
	return nil
}

// plainCSV returns an error of encoding/csv without its line, which is named elsewhere.
func plainCSV(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty")
	}
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return wrong.Err
	}
	return err
}

// object makes a JSON object of the cells of a line.
func object(names, cells []string, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	row := map[string]any{}
	for i, cell := range cells {
		switch {
		case strings.TrimSpace(cell) == "":
		case names[i] == "episode":
			n, err := strconv.Atoi(strings.TrimSpace(cell))
			if err != nil {
				return nil, fmt.Errorf("episode: want a whole number, found %.40q", cell)
			}
			row[names[i]] = n
		default:
			row[names[i]] = cell
		}
	}
	return json.Marshal(row)
}

// New returns the labels that the set does not have, and that are not repeated: the same words of the same person about
// the same thing.
func (s *Set) New(labels []Label) []Label {
	there := map[Label]bool{}
	same := func(l Label) Label {
		l.ID, l.At = "", time.Time{}
		return l
	}
	for _, l := range s.All {
		there[same(l)] = true
	}
	var added []Label
	for _, l := range labels {
		if k := same(l); !there[k] {
			there[k] = true
			added = append(added, l)
		}
	}
	return added
}
