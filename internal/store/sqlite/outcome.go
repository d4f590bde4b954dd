package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"parley/internal/store/sqlite/content"
	"parley/internal/store/sqlite/row"
	"parley/journal"
	"parley/world"
)

const (
	outcomeColumns = `seq, sum, episode, attempt, at, failed, scores, data, stack, play, chance`
	outcomesSQL    = `SELECT ` + outcomeColumns + ` FROM outcomes ` + inSpan
)

func (r *reader) outcomes(in span, keep keepFunc) (n int64, err error) {
	err = r.scan(outcomesSQL, in, func(c row.Reader) error {
		e, err := readOutcome(c)
		if err != nil || r.lost.Has(e.Episode) {
			return err
		}
		n++
		keep(c.Key, e)
		return nil
	})
	return n, err
}

// readOutcome reads a row of outcomesSQL.
func readOutcome(c row.Reader) (*journal.Ended, error) {
	c.Begin(row.Outcomes, 1)
	e := &journal.Ended{Episode: c.Int(), Attempt: c.Int()}
	if err := c.Check(); err != nil {
		return nil, err
	}
	e.At, e.Outcome.Failed = c.Time(), c.Optional()
	scores := c.Text()
	e.Outcome.Data, e.Stack = json.RawMessage(c.JSON()), c.Optional()
	play := c.Optional()
	e.Chance = c.Int() != 0
	err := c.Check()
	if err != nil {
		return nil, row.Of(e.Episode, err)
	}
	if n, err := hex.Decode(e.Play[:], []byte(play)); play != "" && (err != nil || n != len(e.Play)) {
		return nil, c.Bad("has a play that cannot be read")
	}
	if e.Outcome.Scores, err = decodeScores(scores); err != nil {
		return nil, c.Bad("has scores that cannot be read: " + err.Error())
	}
	return e, nil
}

// storedScore is a score. Its value is a text if JSON has no number for it.
type storedScore struct {
	Seat  string `json:"seat,omitempty"`
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func decodeScores(text string) ([]world.Score, error) {
	if text == "" {
		return nil, nil
	}
	in, err := decode[[]storedScore]([]byte(text))
	if err != nil {
		return nil, err
	}
	out := make([]world.Score, len(in))
	for i, s := range in {
		out[i] = world.Score{Seat: s.Seat, Name: s.Name}
		switch v := s.Value.(type) {
		case float64:
			out[i].Value = v
		case string:
			if out[i].Value, err = strconv.ParseFloat(v, 64); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("the score %s is not a number", s.Name)
		}
	}
	return out, nil
}

func encodeScores(scores []world.Score) (string, error) {
	if len(scores) == 0 {
		return "", nil
	}
	out := make([]storedScore, len(scores))
	for i, s := range scores {
		out[i] = storedScore{s.Seat, s.Name, s.Value}
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			out[i].Value = strconv.FormatFloat(s.Value, 'g', -1, 64)
		}
	}
	return content.Encode(out)
}

func (w *writer) putEnded(e *journal.Ended) error {
	p, _, err := w.step(e.Episode, 0)
	if err != nil {
		return err
	}
	p.End(e)
	p.failed = e.Outcome.Failed != ""
	scores, err := encodeScores(e.Outcome.Scores)
	if err != nil {
		return err
	}
	data, ok := e.Outcome.Data.(json.RawMessage)
	if !ok && e.Outcome.Data != nil {
		if data, err = json.Marshal(e.Outcome.Data); err != nil {
			return fmt.Errorf("outcome: %w", err)
		}
	}
	r, err := w.rows.Row(`INSERT INTO outcomes (`+outcomeColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, row.Outcomes, w.totals.seq, 1)
	if err != nil {
		return err
	}
	r.Int(int64(e.Episode))
	r.Int(int64(e.Attempt))
	r.Seal()
	r.Time(e.At)
	r.Optional(e.Outcome.Failed)
	r.Optional(scores)
	r.JSON(data)
	r.Optional(e.Stack)
	play := ""
	if e.Play != (journal.Digest{}) {
		play = hex.EncodeToString(e.Play[:])
	}
	r.Optional(play)
	r.Int(flag(e.Chance, 1))
	r.Seal()
	w.totals.outcomes++
	return r.Do()
}
