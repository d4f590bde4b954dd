package runfile

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

// The JSON of rare entries. Money is in billionths of a dollar.
type (
	begunData struct {
		Version       int           `json:"version"`
		Run           string        `json:"run"`
		Tool          string        `json:"tool"`
		Kind          string        `json:"kind"`
		KindVersion   int           `json:"kind_version"`
		Nested        string        `json:"nested,omitempty"`
		NestedVersion int           `json:"nested_version,omitempty"`
		Seed          string        `json:"seed"` // a text, because many tools cannot read so large a number
		Agents        []world.Agent `json:"agents"`

		Fork   *journal.Origin            `json:"fork,omitempty"`
		Grown  []journal.Growth           `json:"grown,omitempty"`
		Cells  map[string]string          `json:"cells,omitempty"`
		Code   []journal.Code             `json:"code,omitempty"`
		Edited []journal.Growth           `json:"edited,omitempty"`
		Again  []journal.Again            `json:"again,omitempty"`
		Prices map[string]json.RawMessage `json:"prices,omitempty"`

		Measures []world.Measure `json:"measures,omitempty"`
	}
	openedData struct {
		Lost int   `json:"lost"`
		Cost int64 `json:"cost"`
	}
	closedData struct {
		State  journal.State      `json:"state"`
		By     journal.ReasonKind `json:"by,omitempty"`
		Reason string             `json:"reason,omitempty"`
		Lost   int                `json:"lost,omitempty"`
	}
	exposedData struct {
		Worst  int64  `json:"worst"`
		Worker string `json:"worker,omitempty"`
	}
	batchedData struct {
		Step     journal.Step `json:"step"`
		Key      string       `json:"key"`
		Provider string       `json:"provider,omitempty"`
		Model    string       `json:"model,omitempty"`
		Lines    []string     `json:"lines,omitempty"`
		Worst    int64        `json:"worst,omitempty"`
		Dearest  int64        `json:"dearest,omitempty"`
		File     string       `json:"file,omitempty"`
		Batch    string       `json:"batch,omitempty"`
		Why      string       `json:"why,omitempty"`
	}
	steeredData struct {
		Verb   journal.SteerVerb `json:"verb"`
		By     string            `json:"by,omitempty"`
		Detail string            `json:"detail,omitempty"`
		Stage  int               `json:"stage,omitempty"`
	}
)

const eventColumns = `seq, sum, what, at, data, plan`

func (w *writer) putEvent(e journal.Entry) error {
	var (
		what string
		at   time.Time
		data any
		plan json.RawMessage
	)
	switch e := e.(type) {
	case *journal.Begun:
		what, at, plan = "begun", e.At, e.Plan
		data = begunData{e.Version, e.Run, e.Tool, e.Kind, e.KindVersion, e.Nested, e.NestedVersion, strconv.FormatUint(e.Seed, 10), e.Agents, e.Fork, e.Grown, e.Cells, e.Code, e.Edited, e.Again, e.Prices, e.Measures}
	case *journal.Opened:
		what, at, data = "opened", e.At, openedData{e.Lost, int64(e.Cost)}
	case *journal.Closed:
		what, at, data = "closed", e.At, closedData{e.State, e.Reason.Kind, e.Reason.Detail, e.Lost}
	case *journal.Exposed:
		what, data = "exposed", exposedData{int64(e.Worst), e.Worker}
	case *journal.Batched:
		what, at = "batched", e.At
		data = batchedData{e.Step, e.Key, e.Provider, e.Model, e.Lines, int64(e.Worst), int64(e.WorstLine), e.File, e.Batch, e.Why}
	case *journal.Steered:
		what, at, plan, data = "steered", e.At, e.Change, steeredData{e.Verb, e.By, e.Detail, e.Stage}
	default:
		return errors.New("unknown type of entry")
	}
	text, err := encode(data)
	if err != nil {
		return err
	}
	r, err := w.rows.Row(`INSERT INTO events (`+eventColumns+`) VALUES (?, ?, ?, ?, ?, ?)`, tableEvents, w.totals.seq, 1)
	if err != nil {
		return err
	}
	r.Text(what)
	r.Time(at)
	r.Text(text)
	r.JSON(plan)
	r.Seal()
	w.totals.events++
	return r.Do()
}

const eventsSQL = `SELECT ` + eventColumns + ` FROM events ` + inSpan

func (r *reader) events(in span, keep keepFunc) (n int64, err error) {
	err = r.scan(eventsSQL, in, func(c rowReader) error {
		e, err := readEvent(c)
		if err != nil {
			return err
		}
		n++
		keep(c.Key, e)
		return nil
	})
	return n, err
}

// readEvent reads a row of eventsSQL.
func readEvent(c rowReader) (journal.Entry, error) {
	c.Begin(tableEvents, 1)
	what, at, data, plan := c.Text(), c.Time(), c.Text(), c.JSON()
	if err := c.Check(); err != nil {
		return nil, err
	}
	e, err := decodeEvent(what, at, []byte(data), plan)
	if err != nil {
		return nil, c.Bad("cannot be read: " + err.Error())
	}
	return e, nil
}

func decodeEvent(what string, at time.Time, data, plan []byte) (journal.Entry, error) {
	switch what {
	case "begun":
		d, err := decode[begunData](data)
		seed, seedErr := strconv.ParseUint(d.Seed, 10, 64)
		return &journal.Begun{
			Version: d.Version, Run: d.Run, Tool: d.Tool, At: at, Kind: d.Kind, KindVersion: d.KindVersion, Nested: d.Nested, NestedVersion: d.NestedVersion,
			Seed: seed, Agents: d.Agents, Fork: d.Fork, Grown: d.Grown, Cells: d.Cells, Code: d.Code, Edited: d.Edited, Again: d.Again, Prices: d.Prices, Measures: d.Measures, Plan: plan,
		}, errors.Join(err, seedErr)
	case "opened":
		d, err := decode[openedData](data)
		return &journal.Opened{At: at, Lost: d.Lost, Cost: llm.Money(d.Cost)}, err
	case "closed":
		d, err := decode[closedData](data)
		return &journal.Closed{At: at, State: d.State, Reason: journal.Reason{Kind: d.By, Detail: d.Reason}, Lost: d.Lost}, err
	case "exposed":
		d, err := decode[exposedData](data)
		return &journal.Exposed{Worst: llm.Money(d.Worst), Worker: d.Worker}, err
	case "batched":
		d, err := decode[batchedData](data)
		return &journal.Batched{
			At: at, Step: d.Step, Key: d.Key, Provider: d.Provider, Model: d.Model, Lines: d.Lines,
			Worst: llm.Money(d.Worst), WorstLine: llm.Money(d.Dearest), File: d.File, Batch: d.Batch, Why: d.Why,
		}, err
	case "steered":
		d, err := decode[steeredData](data)
		return &journal.Steered{At: at, Verb: d.Verb, By: d.By, Detail: d.Detail, Change: plan, Stage: d.Stage}, err
	default:
		return nil, fmt.Errorf("unknown entry %q", what)
	}
}

func decode[T any](data []byte) (v T, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}
