package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"parley/journal"
	"parley/world"
)

const outcomeColumns = `seq, sum, episode, attempt, at, failed, scores, data, stack, play, chance`

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
	play := c.opt()
	e.Chance = c.int() != 0
	err := c.check()
	if err != nil {
		return nil, of(e.Episode, err)
	}
	if n, err := hex.Decode(e.Play[:], []byte(play)); play != "" && (err != nil || n != len(e.Play)) {
		return nil, &rowError{table: tableOutcomes, key: seq, why: "has a play that cannot be read"}
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

func (w *writer) putEnded(e *journal.Ended) error {
	p, _, err := w.step(e.Episode, 0)
	if err != nil {
		return err
	}
	p.End(e)
	p.failed = e.Outcome.Failed != ""
	var scores string
	if len(e.Outcome.Scores) > 0 {
		if scores, err = encodeScores(e.Outcome.Scores); err != nil {
			return err
		}
	}
	data, ok := e.Outcome.Data.(json.RawMessage)
	if !ok && e.Outcome.Data != nil {
		if data, err = json.Marshal(e.Outcome.Data); err != nil {
			return fmt.Errorf("outcome: %w", err)
		}
	}
	s, err := w.conn.Prepare(`INSERT INTO outcomes (` + outcomeColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	r := row{s: s}
	r.begin(tableOutcomes, w.totals.seq, 1)
	r.int(int64(e.Episode))
	r.int(int64(e.Attempt))
	r.seal()
	r.time(e.At)
	r.opt(e.Outcome.Failed)
	r.opt(scores)
	r.raw(data)
	r.opt(e.Stack)
	play, chance := "", int64(0)
	if e.Play != (journal.Digest{}) {
		play = hex.EncodeToString(e.Play[:])
	}
	if e.Chance {
		chance = 1
	}
	r.opt(play)
	r.int(chance)
	r.seal()
	w.totals.outcomes++
	return r.do()
}

func encodeScores(scores []world.Score) (string, error) {
	out := make([]scoreData, len(scores))
	for i, s := range scores {
		out[i] = scoreData{s.Seat, s.Name, s.Value}
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			out[i].Value = strconv.FormatFloat(s.Value, 'g', -1, 64)
		}
	}
	return encode(out)
}
