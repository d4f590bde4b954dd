package worldtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"

	"parley/internal/kit/files"
	"parley/internal/run/command"
	"parley/world"
)

// describes checks a kind's description of itself.
func (e *exercise) describes() (bad []error) {
	defer func() {
		if p := recover(); p != nil {
			bad = append(bad, fmt.Errorf("the kind panics: %v", p))
		}
	}()
	k := e.kind
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	say(k.Doc == "" || strings.Contains(k.Doc, "\n"), "doc %q: want one line", k.Doc)
	if reflect.ValueOf(k.Defaults().Pointer()).IsNil() {
		return append(bad, errors.New("kind.Defaults returns nil: want new params"))
	}
	params, seats, err := e.params()
	if err != nil {
		return append(bad, err)
	}
	say(len(seats) == 0, "no seats")
	seen := map[string]bool{}
	for _, s := range seats {
		say(s == "" || seen[s], "seats %q: want different ones with names", seats)
		seen[s] = true
	}
	if err := resolves(k, params); err != nil {
		bad = append(bad, err)
	}
	if err := exemplary(k); err != nil {
		bad = append(bad, err)
	}
	bad = append(bad, documented(reflect.TypeOf(params.Pointer()).Elem())...)
	if _, err := command.Of(k, command.Own()); err != nil {
		bad = append(bad, err)
	}
	return bad
}

// resolves checks that params are the same after writing and reading, since a run stores them this way.
func resolves(k world.Kind, params world.Params) error {
	b, err := json.Marshal(params.Pointer())
	if err != nil {
		return fmt.Errorf("params are not JSON: %w", err)
	}
	again := k.Defaults().Pointer()
	if err := strictly(string(b), again); err != nil {
		return fmt.Errorf("params cannot be read back: %w", err)
	}
	c, err := json.Marshal(again)
	if err != nil || !bytes.Equal(b, c) {
		return fmt.Errorf("params are %s when they are written, and %s when read and written again (%w)", b, c, err)
	}
	return nil
}

// documented wants a doc tag on each param, which describes the param in schemas, docs and errors.
func documented(params reflect.Type) (bad []error) {
	if params.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(params) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" && f.Tag.Get("doc") == "" {
			bad = append(bad, fmt.Errorf("the param %s has no doc tag: add one such as `doc:\"How many rounds are played.\"`", name))
		}
	}
	return bad
}

// exemplary checks that the kind's example is a plan of the kind that shows every param with readable values. It does
// not check whether params fit together: they may name files.
func exemplary(k world.Kind) error {
	if k.Example == "" {
		return errors.New("no example: want a plan file with every param and a comment on it")
	}
	var plan struct {
		Kind   string
		Params map[string]any
	}
	file, err := files.ParseYAML(k.Example, files.Limits{Tokens: 100_000, Depth: 100})
	if err == nil {
		if len(file.Docs) != 1 {
			err = fmt.Errorf("has %d documents: want 1", len(file.Docs))
		} else {
			err = yaml.NodeToValue(file.Docs[0].Body, &plan)
		}
	}
	if err != nil {
		return fmt.Errorf("the example is not a plan: %w", err)
	}
	if plan.Kind != k.Name {
		return fmt.Errorf("the example is not a plan of this kind: it says kind: %q, want kind: %s", plan.Kind, k.Name)
	}
	params := k.Defaults().Pointer()
	given, err := json.Marshal(plan.Params)
	if err == nil {
		err = world.DecodeStrict(given, params)
	}
	if err != nil {
		return fmt.Errorf("the example: params: %w", err)
	}
	if missing := unshown(k); missing != nil {
		return fmt.Errorf("the example lacks params: %s; write each with its default and a comment", strings.Join(missing, ", "))
	}
	return nil
}

// unshown lists params that the kind's example does not show, not even in a comment. Only numbers, booleans and strings
// that are not empty by default count: the others are set by few plans, or by a loader.
func unshown(k world.Kind) (missing []string) {
	defaults := reflect.ValueOf(k.Defaults().Pointer()).Elem()
	if defaults.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(defaults.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		value, err := defaults.FieldByIndexErr(f.Index)
		if name == "" || name == "-" || err != nil || value.Kind() == reflect.String && value.Len() == 0 {
			continue
		}
		switch value.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Pointer, reflect.Interface:
			continue
		default:
		}
		key := regexp.QuoteMeta(name) + ":"
		if !regexp.MustCompile(`(?m)^[\s#]*` + key + `|[{,]\s*` + key).MatchString(k.Example) {
			missing = append(missing, name)
		}
	}
	return missing
}
