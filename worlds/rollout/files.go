package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"parley/journal"
	"parley/world"
	"parley/worlds/rollout/rules"
)

// experienceFiles returns files that can also read the lessons of run files, if f can open runs.
func experienceFiles(f world.Files) world.Files { return files{f} }

type files struct{ world.Files }

// Rows returns the rows of a file.
func (f files) Rows(name string) iter.Seq2[json.RawMessage, error] {
	if r, ok := f.Files.(world.RowReader); ok {
		return r.Rows(name)
	}
	return func(yield func(json.RawMessage, error) bool) {
		yield(nil, fmt.Errorf("%s: rows cannot be read here", name))
	}
}

// Lessons returns the lessons of a run file, each as JSON.
func (f files) Lessons(name string) (rows []json.RawMessage, err error) {
	opener, ok := f.Files.(journal.Opener)
	if !ok {
		return nil, fmt.Errorf("%s: run files cannot be read here", name)
	}
	run, err := opener.OpenRun(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	all, err := Of(context.Background(), run) // the files end it with the loading of the plan
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, l := range all {
		row, err := json.Marshal(l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

var (
	_ world.RowReader    = files{}
	_ rules.LessonReader = files{}
)
