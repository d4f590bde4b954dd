// Part folder reads scenario folders: scenario.yaml, actors/*.yaml and, if they exist,
// metrics.yaml, validation-rules.yaml, exogenous-events.yaml and background/*.md.
//
// It refuses an unknown key, a misnamed file and an invalid value. It reports all errors at once, with file, line, column and
// key. Package earlier converts folders in other spellings.

package script

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"parley/world"
)

// The files of a folder.
const (
	scenarioFile = "scenario.yaml"
	metricsFile  = "metrics.yaml"
	checksFile   = "validation-rules.yaml"
	eventsFile   = "exogenous-events.yaml"
)

// reader collects a script from the files of a folder.
type reader struct {
	files  world.Files
	dir    string
	script *Script
	errs   []error
	advice []string
	// broken means that a file is not valid YAML, so what depends on it cannot be checked.
	broken bool
	off    features

	scenario, metrics, checks, events world.Document
	actors                            []world.Document // in the order of script.Actors
	// spelled maps a script key to the key that the scenario file uses for it.
	spelled map[string]string
}

// Read reads the folder dir. advice says what to write differently, although it was
// understood. The error joins everything that is wrong.
func Read(files world.Files, dir string) (s *Script, advice []string, err error) {
	clean := strings.TrimSuffix(strings.TrimSuffix(path.Clean(dir), "/"+scenarioFile), "/")
	r := &reader{files: files, dir: clean, script: &Script{From: dir}, spelled: map[string]string{}}
	if len(files.Match(r.path(scenarioFile))) == 0 {
		return nil, nil, r.missing(dir)
	}
	r.readScenario()
	r.readActors()
	r.readMetrics()
	r.readChecks()
	r.readEvents()
	r.readBackground()
	r.misnamed()
	if !r.broken {
		for _, p := range r.script.Problems() {
			r.problem(p)
		}
	}
	return r.script, r.advice, errors.Join(r.errs...)
}

func (r *reader) path(name string) string { return r.dir + "/" + name }

// missing explains why a folder is not that of a scenario.
func (r *reader) missing(dir string) error {
	if found := r.files.Match(r.path("definition/" + scenarioFile)); len(found) > 0 {
		return fmt.Errorf("params.folder: %q: the files are in its folder definition: write %s/definition", dir, r.dir)
	}
	if found := r.files.Match(r.path("definition/scenario.yml")); len(found) > 0 {
		return fmt.Errorf("params.folder: %q: the files are in its folder definition, as in the earlier Scenario Lab: convert the folder with parley init scenario --from FOLDER", dir)
	}
	if found := r.files.Match(r.path("scenario.yml")); len(found) > 0 {
		return fmt.Errorf("params.folder: %q: rename its scenario.yml to %s", dir, scenarioFile)
	}
	if beside, ok := r.files.(world.FolderLister); ok {
		parent, base := path.Split(r.dir)
		names := beside.Folders(parent)
		if like := world.Nearest(base, names); base != "." && base != ".." && !slices.Contains(names, base) {
			if like != "" {
				return fmt.Errorf("params.folder: %q: no such folder; did you mean %s?", dir, parent+like)
			}
			return fmt.Errorf("params.folder: %q: no such folder; name the folder of a scenario, beside the plan file", dir)
		}
	}
	return fmt.Errorf("params.folder: %q: there is no %s in it; name the folder of a scenario, beside the plan file", dir, scenarioFile)
}

// fail reports a problem at a key of a file.
func (r *reader) fail(d world.Document, key, format string, args ...any) {
	if d == nil {
		return
	}
	if err := d.Fault(key, format, args...); err != nil {
		r.errs = append(r.errs, err)
	}
}

// advise adds advice on how to write something that was understood.
func (r *reader) advise(d world.Document, key, format string, args ...any) {
	if d != nil {
		r.advice = append(r.advice, d.Place(key)+": "+fmt.Sprintf(format, args...))
	}
}

// yaml reads one of the files. It is not ok if the file is missing or not valid YAML.
func (r *reader) yaml(name string, v any) (world.Document, bool) {
	if len(r.files.Match(r.path(name))) == 0 {
		return nil, false
	}
	d, err := r.files.YAML(r.path(name), v)
	if err != nil {
		r.errs = append(r.errs, err)
	}
	if d == nil {
		r.broken = true
	}
	return d, d != nil
}

// problem reports a problem of the script at its place in the files.
func (r *reader) problem(p Problem) {
	head, rest, nested := strings.Cut(p.Key, ".")
	index := 0
	_, err := fmt.Sscanf(head[strings.IndexByte(head+"[", '['):]+" ", "[%d]", &index)
	list := err == nil
	switch {
	case list && strings.HasPrefix(head, "actors") && index < len(r.actors):
		r.fail(r.actors[index], rest, "%s", p.What)
	case list && strings.HasPrefix(head, "metrics"):
		r.fail(r.metrics, p.Key, "%s", p.What)
	case list && strings.HasPrefix(head, "events"):
		r.fail(r.events, "exogenous_"+p.Key, "%s", p.What)
	case nested && head == "validation":
		r.fail(r.checks, rest, "%s", p.What)
	default:
		key := p.Key
		if s := r.spelled[key]; s != "" {
			key = s
		}
		r.fail(r.scenario, key, "%s", p.What)
	}
}

// misnamed reports files whose names suggest that they should be read, but that are not.
func (r *reader) misnamed() {
	known := []string{scenarioFile, metricsFile, checksFile, eventsFile}
	found := append(r.files.Match(r.path("*.yaml")), r.files.Match(r.path("*.yml"))...)
	for _, file := range found {
		name := path.Base(file)
		for _, like := range []struct{ word, file string }{{"metric", metricsFile}, {"valid", checksFile}, {"check", checksFile}, {"event", eventsFile}} {
			if !slices.Contains(known, name) && strings.Contains(strings.ToLower(name), like.word) {
				r.errs = append(r.errs, fmt.Errorf("params.folder: %s would not be read: rename it to %s", file, like.file))
				break
			}
		}
	}
}

// readBackground reads the documents that everybody can read.
func (r *reader) readBackground() {
	for _, file := range append(r.files.Match(r.path("background/*.md")), r.files.Match(r.path("background/*.txt"))...) {
		text, err := r.files.Text(file)
		if err != nil {
			r.errs = append(r.errs, err)
			continue
		}
		if text = strings.TrimSpace(text); text != "" {
			r.script.Background = append(r.script.Background, Document{Name: path.Base(file), Text: text})
		}
	}
}
