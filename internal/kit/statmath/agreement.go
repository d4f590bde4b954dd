package statmath

import "math"

// Kappa returns Cohen's kappa: how much more often two raters agree than by chance, as a share of what is left above
// chance. A pair is one thing that both rated. The interval is that of Fleiss, Cohen and Everitt (1969). Where it has no
// width, it is Wilson's for how often they agree. Kappa is unknown if both gave one and the same rating to everything.
func Kappa(p Pairs, confidence float64) Quantity {
	n := float64(p.N())
	q := Quantity{Value: math.NaN(), Interval: Interval{Low: -1, High: 1}, N: max(0, p.N()), Method: "cohen's kappa"}
	if n <= 0 || !p.valid() {
		return q
	}
	// Shares of the table: cell[i][j] has rating i by A and j by B.
	cell := [2][2]float64{{float64(p.Both) / n, float64(p.OnlyA) / n}, {float64(p.OnlyB) / n, float64(p.Neither) / n}}
	a := [2]float64{cell[0][0] + cell[0][1], cell[1][0] + cell[1][1]}
	b := [2]float64{cell[0][0] + cell[1][0], cell[0][1] + cell[1][1]}
	agree, chance := cell[0][0]+cell[1][1], float64(a[0]*b[0])+float64(a[1]*b[1])
	if chance >= 1 {
		return q
	}
	q.Value = (agree - chance) / (1 - chance)
	k := 1 - q.Value
	var variance float64
	for i := range 2 {
		own := 1 - float64((a[i]+b[i])*k)
		variance += float64(cell[i][i] * own * own)
		other := b[i] + a[1-i]
		variance += float64(k * k * cell[i][1-i] * other * other)
	}
	rest := q.Value - float64(chance*k)
	variance = (variance - float64(rest*rest)) / float64((1-chance)*(1-chance)*n)
	z := normalQuantile(confidence)
	switch {
	case math.IsInf(z, 1):
	case agree == 0 || agree == 1 || variance <= 0:
		i := wilsonShare(agree, n, confidence)
		q.Interval = Interval{Low: max(-1, (i.Low-chance)/(1-chance)), High: (i.High - chance) / (1 - chance)}
	default:
		half := z * math.Sqrt(variance)
		q.Interval = Interval{Low: max(-1, q.Value-half), High: min(1, q.Value+half)}
	}
	return q
}
