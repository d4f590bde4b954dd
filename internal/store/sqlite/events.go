package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/journal"
	"parley/llm"
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
			Seed: seed, Agents: d.Agents, Fork: d.Fork, Grown: d.Grown, Cells: d.Cells, Plan: plan,
		}, errors.Join(err, serr)
	case "opened":
		var d openedData
		err := json.Unmarshal(data, &d)
		return &journal.Opened{At: at, Lost: d.Lost, Cost: llm.Money(d.Cost)}, err
	case "closed":
		var d closedData
		err := json.Unmarshal(data, &d)
		return &journal.Closed{At: at, State: d.State, Reason: journal.Reason{Kind: d.By, Detail: d.Reason}}, err
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
