package label

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	var all []Label
	add := func(raw []byte) error {
		l, err := readRow(raw, id, episodes)
		all = append(all, l)
		return err
	}
	var line int
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		line, err = csvRows(b, add)
	case ".jsonl", ".ndjson":
		line, err = jsonRows(b, add)
	default:
		return nil, fmt.Errorf("%s: the name ends in %q; want .csv or .jsonl", path, ext)
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, line, err)
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

// jsonRows adds the lines of a file, and returns the number of the last that it read.
func jsonRows(b []byte, add func(raw []byte) error) (line int, err error) {
	for text := range bytes.Lines(b) {
		line++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if err := add(text); err != nil {
			return line, err
		}
	}
	return line, nil
}

// csvRows adds the rows of a CSV file as JSON objects, and returns the line of the last that it read. Empty cells are left out.
func csvRows(b []byte, add func(raw []byte) error) (line int, err error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(b, []byte("\ufeff")))) // as spreadsheets write it
	names, err := r.Read()
	if errors.Is(err, io.EOF) {
		return 1, errors.New("the file is empty")
	}
	if err == nil {
		err = checkNames(names)
	}
	for line = 1; err == nil; {
		var cells []string
		if cells, err = r.Read(); errors.Is(err, io.EOF) {
			return line, nil
		}
		var raw []byte
		if err == nil {
			line, _ = r.FieldPos(0)
			raw, err = object(names, cells)
		}
		if err == nil {
			err = add(raw)
		}
	}
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return wrong.Line, wrong.Err
	}
	return line, err
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

// object makes a JSON object of the cells of a line.
func object(names, cells []string) ([]byte, error) {
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
