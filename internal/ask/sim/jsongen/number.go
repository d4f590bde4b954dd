package jsongen

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
)

// span is the size of a range with only one bound.
const span = 100

// numberRange holds the constraints of a schema on numbers.
type numberRange struct {
	min, max         float64
	hasMin, hasMax   bool
	exclMin, exclMax bool
	step             *big.Rat // multipleOf, or nil
	decimals         int      // of step
}

func rangeOf(m map[string]any) numberRange {
	var n numberRange
	n.min, n.hasMin = floatOf(m["minimum"])
	n.max, n.hasMax = floatOf(m["maximum"])
	if b, ok := m["exclusiveMinimum"].(bool); ok { // as draft 4 spelled it
		n.exclMin = b
	}
	if b, ok := m["exclusiveMaximum"].(bool); ok {
		n.exclMax = b
	}
	if f, ok := floatOf(m["exclusiveMinimum"]); ok && (!n.hasMin || f >= n.min) {
		n.min, n.hasMin, n.exclMin = f, true, true
	}
	if f, ok := floatOf(m["exclusiveMaximum"]); ok && (!n.hasMax || f <= n.max) {
		n.max, n.hasMax, n.exclMax = f, true, true
	}
	if r, ok := rat(m["multipleOf"]); ok && r.Sign() > 0 {
		n.step, n.decimals = r, decimalsOf(r)
	}
	return n
}

func floatOf(v any) (float64, bool) {
	num, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := num.Float64()
	if err != nil || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// decimalsOf returns the number of decimals that represent r exactly. r comes from a decimal, so there
// is one.
func decimalsOf(r *big.Rat) int {
	s := strings.TrimRight(r.FloatString(40), "0")
	return len(s) - 1 - strings.IndexByte(s, '.')
}

// bounds returns the bounds of the range. It makes up missing ones.
func (n *numberRange) bounds() (lo, hi float64) {
	switch {
	case n.hasMin && n.hasMax:
		return n.min, n.max
	case n.hasMin:
		return n.min, n.min + max(span, math.Abs(n.min)/10)
	case n.hasMax && n.max >= 0:
		return math.Max(0, n.max-span), n.max
	case n.hasMax:
		return n.max - span, n.max
	default:
		return 0, span
	}
}

func (n *numberRange) appendInteger(dst []byte, r *rand.Rand) []byte {
	if n.step != nil { // the integers among multiples of p/q are the multiples of p
		return n.appendMultiple(dst, r, new(big.Rat).SetInt(n.step.Num()), 0)
	}
	lo, hi := n.bounds()
	from, to := math.Ceil(lo), math.Floor(hi)
	if n.exclMin && from == lo {
		from++
	}
	if n.exclMax && to == hi {
		to--
	}
	if math.Abs(from) > 1e15 || math.Abs(to) > 1e15 {
		return n.appendMultiple(dst, r, big.NewRat(1, 1), 0)
	}
	k := int64(from)
	if to > from {
		k += r.Int64N(int64(to-from) + 1)
	}
	return strconv.AppendInt(dst, k, 10)
}

func (n *numberRange) appendNumber(dst []byte, r *rand.Rand) []byte {
	if n.step != nil {
		return n.appendMultiple(dst, r, n.step, n.decimals)
	}
	lo, hi := n.bounds()
	decimals := 2
	if width := hi - lo; width > 0 && width < 1 {
		decimals = min(15, 2+int(math.Ceil(-math.Log10(width))))
	}
	scale := math.Pow10(decimals)
	from, to := math.Ceil(lo*scale), math.Floor(hi*scale)
	if n.exclMin && from/scale <= lo {
		from++
	}
	if n.exclMax && to/scale >= hi {
		to--
	}
	v := (lo + hi) / 2
	if to >= from && to-from < 1e17 {
		v = (from + math.Floor(r.Float64()*(to-from+1))) / scale
	}
	if v < lo || v > hi {
		v = lo
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// appendMultiple appends a multiple of step in the range.
func (n *numberRange) appendMultiple(dst []byte, r *rand.Rand, step *big.Rat, decimals int) []byte {
	lo, hi := n.bounds()
	if !n.hasMin || !n.hasMax { // room for a few multiples
		f, _ := step.Float64()
		if n.hasMax {
			lo = math.Min(lo, hi-4*f)
		} else {
			hi = math.Max(hi, lo+4*f)
		}
	}
	from, to := quotient(lo, step, true), quotient(hi, step, false)
	if n.exclMin && onBound(from, step, lo) {
		from.Add(from, big.NewInt(1))
	}
	if n.exclMax && onBound(to, step, hi) {
		to.Sub(to, big.NewInt(1))
	}
	k := from
	if width := new(big.Int).Sub(to, from); width.Sign() > 0 {
		draw := r.Int64()
		if width.IsInt64() && width.Int64() < math.MaxInt64 {
			draw = r.Int64N(width.Int64() + 1)
		}
		k = new(big.Int).Add(from, big.NewInt(draw))
	}
	v := new(big.Rat).Mul(new(big.Rat).SetInt(k), step)
	return append(dst, v.FloatString(decimals)...)
}

// quotient returns bound/step, rounded up or down.
func quotient(bound float64, step *big.Rat, up bool) *big.Int {
	b := new(big.Rat).SetFloat64(bound)
	if d, ok := new(big.Rat).SetString(strconv.FormatFloat(bound, 'f', -1, 64)); ok {
		b = d // the decimal, such as 0.1, not the nearest float
	}
	b.Quo(b, step)
	q, m := new(big.Int).DivMod(b.Num(), b.Denom(), new(big.Int))
	if up && m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func onBound(k *big.Int, step *big.Rat, bound float64) bool {
	f, _ := new(big.Rat).Mul(new(big.Rat).SetInt(k), step).Float64()
	return f == bound
}
