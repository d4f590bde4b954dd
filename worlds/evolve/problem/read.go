package problem

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// Fields are what a file calls the parts of a problem.
type Fields struct {
	Question string
	Answer   string
	// ID and Choices may be missing in a file.
	ID, Choices string
}

// mostFaults is how many problems with a file are told at once.
const mostFaults = 10

// Read reads a file: .jsonl (an object a line), .json (a list of objects), .csv (with a
// header) or .yaml (a list under problems). An answer that ends in "#### 72", as GSM8K writes
// them, is what comes after.
func Read(files world.Files, name string, f Fields) ([]Problem, error) {
	rows, err := rowsOf(files, name)
	if err != nil {
		return nil, err
	}
	var all []Problem
	var faults []error
	for _, row := range rows {
		p, err := f.problem(row)
		if err != nil {
			if faults = append(faults, fmt.Errorf("%s: %s: %w", name, row.where, err)); len(faults) == mostFaults {
				break
			}
			continue
		}
		all = append(all, p)
	}
	if len(all) == 0 && len(faults) == 0 {
		faults = append(faults, fmt.Errorf("%s: holds no problems", name))
	}
	return all, errors.Join(faults...)
}

// row is an entry of a file.
type row struct {
	where  string // line 3, problem 2
	values map[string]any
}

func rowsOf(files world.Files, name string) ([]row, error) {
	ext := strings.ToLower(path.Ext(name))
	if ext == ".yaml" || ext == ".yml" {
		var file struct {
			Problems []map[string]any `json:"problems"`
		}
		if _, err := files.YAML(name, &file); err != nil {
			return nil, err
		}
		return listed(file.Problems), nil
	}
	text, err := files.Text(name)
	if err != nil {
		return nil, err
	}
	switch ext {
	case ".jsonl", ".ndjson":
		return readLines(name, text)
	case ".json":
		var all []map[string]any
		if err := decode(text, &all); err != nil {
			return nil, fmt.Errorf("%s: want a list of objects: %w", name, err)
		}
		return listed(all), nil
	case ".csv":
		return readCSV(name, text)
	}
	return nil, fmt.Errorf("%s: want a file that ends in .jsonl, .json, .csv or .yaml", name)
}

func listed(all []map[string]any) []row {
	var rows []row
	for i, values := range all {
		rows = append(rows, row{fmt.Sprint("problem ", i+1), values})
	}
	return rows
}

func readLines(name, text string) ([]row, error) {
	var rows []row
	n := 0
	for line := range strings.Lines(text) {
		if n++; strings.TrimSpace(line) == "" {
			continue
		}
		var values map[string]any
		if err := decode(line, &values); err != nil {
			return nil, fmt.Errorf("%s: line %d: want a JSON object: %w", name, n, err)
		}
		rows = append(rows, row{fmt.Sprint("line ", n), values})
	}
	return rows, nil
}

// decode keeps numbers as they are written: an answer of 1.50 is not 1.5.
func decode(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if strings.TrimSpace(text[d.InputOffset():]) != "" {
		return errors.New("something comes after it")
	}
	return nil
}

func readCSV(name, text string) ([]row, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	head, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: want a header and a line for each problem: %w", name, err)
	}
	var rows []row
	for {
		record, err := r.Read()
		if _, broken := errors.AsType[*csv.ParseError](err); broken {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			return rows, nil // the end
		}
		line, _ := r.FieldPos(0)
		values := map[string]any{}
		for i, column := range head {
			values[strings.TrimSpace(column)] = record[i]
		}
		rows = append(rows, row{fmt.Sprint("line ", line), values})
	}
}

// problem takes a problem from the fields of a row.
func (f Fields) problem(r row) (Problem, error) {
	question, ok := text(r.values[f.Question])
	if !ok || strings.TrimSpace(question) == "" {
		return Problem{}, missing(f.Question, "a question", r.values)
	}
	answer, ok := text(r.values[f.Answer])
	if i := strings.LastIndex(answer, "####"); i >= 0 {
		answer = answer[i+len("####"):]
	}
	if answer = strings.TrimSpace(answer); !ok || answer == "" {
		return Problem{}, missing(f.Answer, "an answer", r.values)
	}
	id, _ := text(r.values[f.ID])
	p := Problem{ID: id, Question: strings.TrimSpace(question), Answer: answer}
	if p.ID == "" {
		p.ID = strings.ReplaceAll(r.where, " ", "-")
	}
	choices, _ := r.values[f.Choices].([]any)
	for _, c := range choices {
		word, _ := text(c)
		p.Choices = append(p.Choices, word)
	}
	return p, nil
}

func missing(field, what string, values map[string]any) error {
	return fmt.Errorf("field %q is to hold %s; there are: %s", field, what, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
}

// text reads a value that is a text, a number or a truth.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
