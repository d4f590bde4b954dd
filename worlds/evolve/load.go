package evolve

import (
	"errors"
	"fmt"
	"strings"

	"parley/world"
	"parley/worlds/evolve/problem"
)

// Load reads the files of problems, and keeps those that are used.
func (definition) Load(p *Params, files world.Files) ([]string, error) {
	q := &p.Problems
	if q.Source != "file" || q.File == "" {
		return nil, nil // check reports what is missing
	}
	if q.Set != nil {
		return nil, errors.New("evolve: params.problems.set: cannot be combined with file; remove one of them")
	}
	if s := p.sizes(); s.Train < 0 || s.Validation < 0 || s.Test < 0 {
		return nil, p.check()
	}
	fields := problem.Fields{Question: q.Question, Answer: q.Answer, ID: q.ID, Choices: q.Choices}
	all, err := problem.Read(files, q.File, fields)
	if err != nil {
		return nil, named("file", err)
	}
	var test []problem.Problem
	if q.TestFile != "" {
		if test, err = problem.Read(files, q.TestFile, fields); err != nil {
			return nil, named("test_file", err)
		}
	}
	set, err := problem.Split(all, test, p.sizes(), q.Seed)
	if err != nil {
		return nil, named("file", fmt.Errorf("%s: %w", q.File, err))
	}
	q.Set = set
	return nil, p.fits(set)
}

// joinedError is an error that joins several, as errors.Join does.
type joinedError interface{ Unwrap() []error }

// named adds the name of the param to each joined error. Errors that show a position themselves are unchanged.
func named(param string, err error) error {
	if many, ok := err.(joinedError); ok {
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, named(param, one))
		}
		return errors.Join(all...)
	}
	if strings.Contains(err.Error(), "\n") {
		return err // it shows the position
	}
	return fmt.Errorf("evolve: params.problems.%s: %w", param, err)
}

// fits checks that the checker can accept every expected answer.
func (p *Params) fits(set *problem.Set) error {
	const maxFaults = 5
	var faults []error
	for _, part := range [][]problem.Problem{set.Train, set.Validation, set.Test} {
		for _, one := range part {
			if err := p.Checker.Fits(one); err != nil && len(faults) < maxFaults {
				faults = append(faults, fmt.Errorf("evolve: params.checker.type: %w", err))
			}
		}
	}
	return errors.Join(faults...)
}
