package runfile

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"parley/journal"
	"parley/world"
)

const (
	outcomeColumns = `seq, sum, episode, attempt, at, failed, scores, data, stack, play, chance`
	outcomesSQL    = `SELECT ` + outcomeColumns + ` FROM outcomes ` + inSpan
)

func (r *reader) outcomes(in span, keep keepFunc) (n int64, err error) {
	return r.scanOutcomes(in, true, keep)
}

// ends reads outcomes without the worlds' own data.
func (r *reader) ends(in span, keep keepFunc) (n int64, err error) {
	return r.scanOutcomes(in, false, keep)
}

func (r *reader) scanOutcomes(in span, data bool, keep keepFunc) (n int64, err error) {
	err = r.scan(outcomesSQL, in, func(c rowReader) error {
		e, err := r.readOutcome(c, data)
		if err != nil || r.lost.Has(e.Episode) {
			return err
		}
		n++
		keep(c.Key, e)
		return nil
	})
	return n, err
}

// Outcomes reads the ends of episodes in these entries.
func (s *Store) Outcomes(ctx context.Context, entries []int, each func(*journal.Ended) error) error {
	if len(entries) == 0 {
		return nil
	}
	out := make([]*journal.Ended, len(entries))
	err := s.read(func(r *reader) error {
		stmt, err := r.conn.Prepare(`SELECT ` + outcomeColumns + ` FROM outcomes WHERE seq = ?`)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return err
		}
		for i, n := range entries {
			if err := findRow(stmt, tableOutcomes, int64(n), func(c rowReader) (err error) { out[i], err = r.readOutcome(c, true); return err }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range out { // no state of the file is held meanwhile
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// readOutcome reads a row of outcomesSQL. The world's own data is left out unless it is wanted.
func (r *reader) readOutcome(c rowReader, data bool) (*journal.Ended, error) {
	c.Begin(tableOutcomes, 1)
	e := &journal.Ended{Episode: c.Int(), Attempt: c.Int()}
	if err := c.Check(); err != nil {
		return nil, err
	}
	e.At, e.Outcome.Failed = c.Time(), c.Optional()
	scores := c.Text()
	if data {
		e.Outcome.Data = json.RawMessage(c.JSON())
	} else {
		r.skimmed = c.Skim(r.skimmed)
	}
	e.Stack = c.Optional()
	play := c.Optional()
	e.Chance = c.Int() != 0
	err := c.Check()
	if err != nil {
		return nil, withEpisode(e.Episode, err)
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
	return encode(out)
}

func (w *writer) putEnded(e *journal.Ended) error {
	p, _, err := w.advance(e.Episode, 0)
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
	r, err := w.rows.Row(`INSERT INTO outcomes (`+outcomeColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, tableOutcomes, w.totals.seq, 1)
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
