package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"parley/internal/kit/statmath"
	"parley/llm"
	"parley/world"
)

// WriteCSV writes a table. A number with an interval becomes four columns: its own, and
// those that end in _low, _high and _n. Unknown values are empty.
func (t *Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	spread := t.spread()
	var head []string
	for i, c := range t.Columns {
		head = append(head, c.Name)
		if spread[i] {
			head = append(head, c.Name+"_low", c.Name+"_high", c.Name+"_n")
		}
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, r := range t.Rows {
		var line []string
		for i, c := range r {
			line = append(line, plain(c.Value))
			if spread[i] {
				line = append(line, ends(c.Value)...)
			}
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// spread reports which columns have intervals.
func (t *Table) spread() []bool {
	out := make([]bool, len(t.Columns))
	for _, r := range t.Rows {
		for i, c := range r {
			if _, ok := c.Value.(statmath.Quantity); ok {
				out[i] = true
			}
		}
	}
	return out
}

func ends(v any) []string {
	q, ok := v.(statmath.Quantity)
	if !ok {
		return []string{"", "", ""}
	}
	return []string{plain(q.Low), plain(q.High), strconv.Itoa(q.N)}
}

func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case statmath.Quantity:
		return plain(v.Value)
	case llm.Money:
		return plain(v.Dollars())
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		if world.Formula(v) {
			return "'" + v
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}
