// Package problem reads or generates problems with answers, and splits them into those that evolution sees and those
// that are held out.
//
// A question is in one part of a split only, even if a file repeats it with other white space. The same seed splits in the
// same way. Errors name the line of the file.
//
// A Checker decides whether a text of a model answers a problem correctly (checker.go). arithmetic.go makes word problems
// of graded difficulty, and solves them.
package problem

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// Problem is a question and its right answer.
type Problem struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Choices  []string `json:"choices,omitempty"` // of a question with several, in the order of their letters
}

// Set holds problems in three parts.
type Set struct {
	Train      []Problem `json:"train"`                // for evolution
	Validation []Problem `json:"validation,omitempty"` // for choosing the winner; may be empty
	Test       []Problem `json:"test"`                 // for measuring the winner
}

// Sizes are the numbers of problems of the parts.
type Sizes struct{ Train, Validation, Test int }

// Arithmetic generates a set of word problems.
func Arithmetic(seed uint64, sizes Sizes, easiest, hardest int) *Set {
	made := GenerateArithmetic(seed, sizes.Train+sizes.Validation+sizes.Test, easiest, hardest)
	all := make([]Problem, len(made))
	for i, p := range made {
		all[i] = Problem{ID: fmt.Sprintf("arithmetic-%d-%04d", p.Difficulty, i), Question: p.Question, Answer: strconv.Itoa(p.Answer)}
	}
	set, _ := Split(all, nil, sizes, seed) // cannot fail: there are enough problems
	return set
}

// Split draws the parts from all, or the test part from test if that is not empty. A question in both is only used for
// the test.
func Split(all, test []Problem, sizes Sizes, seed uint64) (*Set, error) {
	r := rand.New(rand.NewPCG(seed, 0x73706c6974))
	apart := len(test) > 0
	test = distinct(test, nil)
	all = distinct(all, test)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	r.Shuffle(len(test), func(i, j int) { test[i], test[j] = test[j], test[i] })
	need := sizes.Train + sizes.Validation
	if !apart {
		need += sizes.Test
	}
	if len(all) < need {
		return nil, fmt.Errorf("%d different problems are too few for train %d, validation %d and test %d", len(all), sizes.Train, sizes.Validation, sizes.Test)
	}
	if apart && len(test) < sizes.Test {
		return nil, fmt.Errorf("%d different problems are too few for test %d", len(test), sizes.Test)
	}
	if !apart {
		test = all[sizes.Train+sizes.Validation:]
	}
	return &Set{
		Train:      all[:sizes.Train:sizes.Train],
		Validation: all[sizes.Train : sizes.Train+sizes.Validation : sizes.Train+sizes.Validation],
		Test:       test[:sizes.Test:sizes.Test],
	}, nil
}

// distinct leaves out repeated questions and those in others. It numbers problems without an id or with a duplicate id.
func distinct(all, others []Problem) []Problem {
	seen := map[string]bool{}
	for _, p := range others {
		seen[normalize(p.Question)] = true
	}
	ids := map[string]bool{"": true}
	var out []Problem
	for i, p := range all {
		key := normalize(p.Question)
		if seen[key] {
			continue
		}
		seen[key] = true
		if ids[p.ID] {
			p.ID = fmt.Sprintf("%s#%d", p.ID, i+1)
		}
		ids[p.ID] = true
		out = append(out, p)
	}
	return out
}

// normalize returns a question in lower case with white space normalized.
func normalize(question string) string {
	return strings.ToLower(strings.Join(strings.Fields(question), " "))
}

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
	err := eachRow(files, name, func(r row) error {
		p, err := f.problem(r)
		if err == nil {
			all = append(all, p)
		} else if faults = append(faults, fmt.Errorf("%s: %s: %w", name, r.where, err)); len(faults) == maxFaults {
			return errEnough
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return nil, err
	case len(all)+len(faults) == 0:
		return nil, fmt.Errorf("%s: holds no problems", name)
	}
	return all, errors.Join(faults...)
}

// errEnough ends reading: there are enough faults.
var errEnough = errors.New("enough")

// row is an entry of a file.
type row struct {
	where  string // line 3, problem 2
	values map[string]any
}

// eachRow calls take with the entries of a file one by one, because decoded entries are many times larger than the file. It ends
// with the first error.
func eachRow(files world.Files, name string, take func(row) error) error {
	ext := strings.ToLower(path.Ext(name))
	if ext == ".yaml" || ext == ".yml" {
		var file struct {
			Problems []map[string]any `json:"problems"`
		}
		if _, err := files.YAML(name, &file); err != nil {
			return err
		}
		for i, values := range file.Problems {
			if err := take(row{fmt.Sprint("problem ", i+1), values}); err != nil {
				return err
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
		n := 0
		for line := range strings.Lines(text) {
			if n++; strings.TrimSpace(line) == "" {
				continue
			}
			if err := takeJSON(name, fmt.Sprint("line ", n), line, take); err != nil {
				return err
			}
		}
		return nil
	case ".json":
		var list []json.RawMessage
		err := json.Unmarshal([]byte(text), &list)
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("it is a JSON %s", wrong.Value)
		}
		if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
			line := 1 + strings.Count(text[:min(int(wrong.Offset), len(text))], "\n")
			return fmt.Errorf("%s: line %d: %w", name, line, err)
		}
		if err != nil {
			return fmt.Errorf("%s: want a list of objects: %w", name, err)
		}
		for i, one := range list {
			if err := takeJSON(name, fmt.Sprint("problem ", i+1), string(one), take); err != nil {
				return err
			}
		}
		return nil
	case ".csv":
		return eachRecord(name, text, take)
	}
	return fmt.Errorf("%s: want a file that ends in .jsonl, .json, .csv or .yaml", name)
}

// takeJSON calls take with an entry in JSON. Numbers keep their spelling: an answer of 1.50 is not 1.5.
func takeJSON(name, where, text string, take func(row) error) error {
	var values map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err := d.Decode(&values)
	if err == nil && strings.TrimSpace(text[d.InputOffset():]) != "" {
		err = errors.New("there is more after the value")
	}
	if err != nil {
		return fmt.Errorf("%s: %s: want a JSON object: %w", name, where, err)
	}
	return take(row{where, values})
}

// eachRecord calls take with the lines of a table after its header.
func eachRecord(name, text string, take func(row) error) error {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	head, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s: want a header and a line for each problem: %w", name, err)
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		line, _ := r.FieldPos(0)
		values := map[string]any{}
		for i, column := range head {
			values[strings.TrimSpace(column)] = record[i]
		}
		if err := take(row{fmt.Sprint("line ", line), values}); err != nil {
			return err
		}
	}
}

// problem reads a problem from the fields of a row.
func (f Fields) problem(r row) (Problem, error) {
	question, ok := textOf(r.values[f.Question])
	if !ok || strings.TrimSpace(question) == "" {
		return Problem{}, missingField(f.Question, "a question", r.values)
	}
	answer, ok := textOf(r.values[f.Answer])
	if i := strings.LastIndex(answer, "####"); i >= 0 {
		answer = answer[i+len("####"):]
	}
	if answer = strings.TrimSpace(answer); !ok || answer == "" {
		return Problem{}, missingField(f.Answer, "an answer", r.values)
	}
	id, _ := textOf(r.values[f.ID])
	p := Problem{ID: id, Question: strings.TrimSpace(question), Answer: answer}
	if p.ID == "" {
		p.ID = strings.ReplaceAll(r.where, " ", "-")
	}
	choices, _ := r.values[f.Choices].([]any)
	for _, c := range choices {
		word, _ := textOf(c)
		p.Choices = append(p.Choices, word)
	}
	return p, nil
}

func missingField(field, what string, values map[string]any) error {
	return fmt.Errorf("field %q is to hold %s; there are: %s", field, what, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
}

// textOf returns a string, number or boolean as text.
func textOf(v any) (string, bool) {
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
