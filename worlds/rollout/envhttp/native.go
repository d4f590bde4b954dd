package envhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// native checks the environments of params without servers, and returns how many worker processes they have.
func native(p *rules.Params, codes world.Codes) (processes int, err error) {
	if p.Tasks != "" {
		err = nativeTasks(p.Tasks, codes)
	} else {
		err = nativeSeats(p, codes)
	}
	if err != nil {
		return 0, err
	}
	for _, name := range Names(p) {
		code, err := codes.Find(name.Name)
		if err != nil {
			return 0, err
		}
		processes += code.Workers()
	}
	return processes, nil
}

// nativeSeats checks that the environment of params has their seats.
func nativeSeats(p *rules.Params, codes world.Codes) error {
	seats, err := nativeEnv(p.Env, p.EnvParams, codes)
	if wrong, ok := errors.AsType[paramError](err); ok {
		return errors.New("params.env_params" + string(wrong))
	}
	if err != nil {
		return fmt.Errorf("params.env: %w", err)
	}
	if len(seats) > 0 && !slices.Equal(slices.Sorted(slices.Values(seats)), slices.Sorted(slices.Values(p.Seats))) {
		return fmt.Errorf("params.seats: want the agents of %s: %s", p.Env, strings.Join(seats, ", "))
	}
	return nil
}

// paramError is about a param of an environment: .size: want 2 to 30.
type paramError string

func (e paramError) Error() string { return "params" + string(e) }

// nativeEnv checks that an environment comes with Parley, or is a class in Python, and can be made with params. It returns
// its agents, if they are known. An error about a param is a paramError.
func nativeEnv(name string, params json.RawMessage, codes world.Codes) (seats []string, err error) {
	if rules.IsCode(name) {
		seats, err = checkWorkers(codes, name, params)
		if fault, ok := errors.AsType[*world.CodeError](err); ok && fault.Param != "" {
			err = paramError("." + fault.Param + ": " + fault.Text)
		}
		return seats, err
	}
	kind, err := env.Find(env.Standard(), name)
	if err != nil {
		return nil, fmt.Errorf("%w; or name its servers in params.servers", err)
	}
	if _, err = kind.New(params); err != nil {
		if wrong, ok := strings.CutPrefix(err.Error(), "env: "+name+": params"); ok {
			err = paramError(wrong)
		}
		return nil, err
	}
	return kind.Seats, nil
}

// nativeTasks checks the environments of a file of tasks by the first task of each entry: the others differ
// only in their row.
func nativeTasks(tasks string, codes world.Codes) error {
	for line := range strings.Lines(tasks) {
		var t rules.Task
		if json.Unmarshal([]byte(line), &t) != nil || t.Index != 1 {
			continue // the plan reports bad tasks
		}
		if _, err := nativeEnv(t.Env, t.Params, codes); err != nil {
			return fmt.Errorf("params.environments: %s: %w", t.Group, err)
		}
	}
	return nil
}
