package problem

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// Fields are the names of the fields in a file.
type Fields struct {
	Question string
	Answer   string
	// ID and Choices may be missing in a file.
	ID, Choices string
}

// maxFaults is the maximum number of errors that are reported at once.
const maxFaults = 10

// Read reads a file: .jsonl (an object a line), .json (a list of objects), .csv (with a
// header) or .yaml (a list under problems). If an answer contains ####, as in GSM8K, the text after it is the answer.
func Read(files world.Files, name string, f Fields) ([]Problem, error) {
	var all []Problem
	var faults []error
	for row, err := range rowsOf(files, name) {
		if err != nil {
			return nil, err
		}
		p, err := f.problem(row)
		if err != nil {
			if faults = append(faults, fmt.Errorf("%s: %s: %w", name, row.where, err)); len(faults) == maxFaults {
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

// rowsOf yields the entries of a file one by one, because decoded entries are many times larger than the file. It ends
// with the first error.
func rowsOf(files world.Files, name string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		if err := readRows(files, name, func(r row) bool { return yield(r, nil) }); err != nil {
			yield(row{}, err)
		}
	}
}

func readRows(files world.Files, name string, yield func(row) bool) error {
	ext := strings.ToLower(path.Ext(name))
	if ext == ".yaml" || ext == ".yml" {
		var file struct {
			Problems []map[string]any `json:"problems"`
		}
		if _, err := files.YAML(name, &file); err != nil {
			return err
		}
		for i, values := range file.Problems {
			if !yield(row{fmt.Sprint("problem ", i+1), values}) {
				return nil
			}
		}
		return nil
	}
	text, err := files.Text(name)
	if err != nil {
		return err
	}
	switch ext {
	case ".jsonl", ".ndjson":
		return readLines(name, text, yield)
	case ".json":
		if err := readList(text, yield); err != nil {
			return fmt.Errorf("%s: want a list of objects: %w", name, err)
		}
		return nil
	case ".csv":
		return readCSV(name, text, yield)
	}
	return fmt.Errorf("%s: want a file that ends in .jsonl, .json, .csv or .yaml", name)
}

// readList reads a JSON list of objects.
func readList(text string, yield func(row) bool) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return cmp.Or(err, fmt.Errorf("it begins with %v", first))
	}
	for n := 1; d.More(); n++ {
		var values map[string]any
		if err := d.Decode(&values); err != nil {
			return fmt.Errorf("problem %d: %w", n, err)
		}
		if !yield(row{fmt.Sprint("problem ", n), values}) {
			return nil
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if strings.TrimSpace(text[d.InputOffset():]) != "" {
		return errors.New("there is more after the value")
	}
	return nil
}

func readLines(name, text string, yield func(row) bool) error {
	n := 0
	for line := range strings.Lines(text) {
		if n++; strings.TrimSpace(line) == "" {
			continue
		}
		var values map[string]any
		if err := decode(line, &values); err != nil {
			return fmt.Errorf("%s: line %d: want a JSON object: %w", name, n, err)
		}
		if !yield(row{fmt.Sprint("line ", n), values}) {
			return nil
		}
	}
	return nil
}

// decode keeps the spelling of numbers: an answer of 1.50 is not 1.5.
func decode(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if strings.TrimSpace(text[d.InputOffset():]) != "" {
		return errors.New("there is more after the value")
	}
	return nil
}

func readCSV(name, text string, yield func(row) bool) error {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	head, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s: want a header and a line for each problem: %w", name, err)
	}
	for {
		record, err := r.Read()
		if _, broken := errors.AsType[*csv.ParseError](err); broken {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			return nil // the end
		}
		line, _ := r.FieldPos(0)
		values := map[string]any{}
		for i, column := range head {
			values[strings.TrimSpace(column)] = record[i]
		}
		if !yield(row{fmt.Sprint("line ", line), values}) {
			return nil
		}
	}
}

// problem reads a problem from the fields of a row.
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

// text returns a string, number or boolean as text.
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
