package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

func (r *reader) events(in span, keep keepFunc) (n int64, err error) {
	err = r.scan(`SELECT seq, sum, what, at, data, plan FROM events `+inSpan, in, func(c columns) error {
		seq := c.key(tableEvents, 1)
		e, err := event(c)
		if err != nil {
			return err
		}
		n++
		keep(seq, e)
		return nil
	})
	return n, err
}

// event reads a row of events after its number.
func event(c columns) (journal.Entry, error) {
	what, at, data, plan := c.str(), c.time(), c.str(), c.raw()
	if err := c.check(); err != nil {
		return nil, err
	}
	e, err := decodeEvent(what, at, []byte(data), plan)
	if err != nil {
		return nil, &rowError{table: tableEvents, key: c.sum.key, why: "cannot be read: " + err.Error()}
	}
	return e, nil
}

func decodeEvent(what string, at time.Time, data, plan []byte) (journal.Entry, error) {
	switch what {
	case "begun":
		var d begunData
		err := json.Unmarshal(data, &d)
		seed, serr := strconv.ParseUint(d.Seed, 10, 64)
		return &journal.Begun{
			Version: d.Version, Run: d.Run, Tool: d.Tool, At: at, Kind: d.Kind, KindVersion: d.KindVersion,
			Seed: seed, Agents: d.Agents, Fork: d.Fork, Plan: plan,
		}, errors.Join(err, serr)
	case "opened":
		var d openedData
		err := json.Unmarshal(data, &d)
		return &journal.Opened{At: at, Lost: d.Lost, Cost: llm.Money(d.Cost)}, err
	case "closed":
		var d closedData
		err := json.Unmarshal(data, &d)
		return &journal.Closed{At: at, State: d.State, Reason: d.Reason}, err
	case "exposed":
		var d exposedData
		err := json.Unmarshal(data, &d)
		return &journal.Exposed{Calls: d.Calls, Worst: llm.Money(d.Worst)}, err
	case "batched":
		var d batchedData
		err := json.Unmarshal(data, &d)
		return &journal.Batched{
			At: at, Step: d.Step, Key: d.Key, Provider: d.Provider, Model: d.Model, Lines: d.Lines,
			Worst: llm.Money(d.Worst), Dearest: llm.Money(d.Dearest), File: d.File, Batch: d.Batch, Why: d.Why,
		}, err
	default:
		return nil, fmt.Errorf("%q is no entry", what)
	}
}

const outcomeColumns = `seq, sum, episode, attempt, at, failed, scores, data, stack`

func (r *reader) outcomes(in span, keep keepFunc) (n int64, err error) {
	err = r.scan(`SELECT `+outcomeColumns+` FROM outcomes `+inSpan, in, func(c columns) error {
		e, err := outcome(c)
		if err != nil || r.lost.has(e.Episode) {
			return err
		}
		n++
		keep(c.row, e)
		return nil
	})
	return n, err
}

// outcome reads a row of outcomeColumns.
func outcome(c columns) (*journal.Ended, error) {
	seq := c.key(tableOutcomes, 1)
	e := &journal.Ended{Episode: c.int(), Attempt: c.int()}
	if err := c.check(); err != nil {
		return nil, err
	}
	e.At, e.Outcome.Failed = c.time(), c.opt()
	scores := c.str()
	e.Outcome.Data, e.Stack = json.RawMessage(c.raw()), c.opt()
	err := c.check()
	if err != nil {
		return nil, of(e.Episode, err)
	}
	if e.Outcome.Scores, err = decodeScores(scores); err != nil {
		return nil, &rowError{table: tableOutcomes, key: seq, why: "has scores that cannot be read: " + err.Error()}
	}
	return e, nil
}

func decodeScores(text string) ([]world.Score, error) {
	if text == "" {
		return nil, nil
	}
	var in []struct {
		Seat, Name string
		Value      any
	}
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, err
	}
	out := make([]world.Score, len(in))
	for i, s := range in {
		out[i] = world.Score{Seat: s.Seat, Name: s.Name}
		switch v := s.Value.(type) {
		case float64:
			out[i].Value = v
		case string: // what JSON has no number for
			value, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return nil, err
			}
			out[i].Value = value
		default:
			return nil, fmt.Errorf("the score %s is not a number", s.Name)
		}
	}
	return out, nil
}
