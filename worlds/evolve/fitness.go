package evolve

import (
	"math"
	"strings"
)

// Parts are what fitness is made of, each from 0 to 1 but the penalty.
type Parts struct {
	Fitness     float64 `json:"fitness"`
	Accuracy    float64 `json:"accuracy"`
	Consistency float64 `json:"consistency"`
	Efficiency  float64 `json:"efficiency"`
	Diversity   float64 `json:"diversity"`
	Penalty     float64 `json:"penalty"`
	// Problems are those that were answered at all: what the rest is over.
	Problems int `json:"problems"`
}

// parts makes the fitness of results that a prompt had. Calls that failed do not count, and
// neither does a problem of which all did.
func (f Fitness) parts(results []Result, prompt string) Parts {
	var p Parts
	var lengths, rights []float64
	read := 0.0
	for _, r := range results {
		x, ok := r.score()
		if !ok {
			continue
		}
		p.Problems++
		p.Accuracy += x
		lengths = append(lengths, r.Length)
		read += 1 - float64(r.Unread)/float64(r.Asked-r.Failed)
		if r.Correct > 0 {
			rights = append(rights, r.CorrectLength)
		}
	}
	if p.Problems == 0 {
		return p
	}
	p.Accuracy /= float64(p.Problems)
	p.Consistency = 0.7*max(0, 1-variation(lengths)) + 0.3*read/float64(p.Problems)
	if len(rights) > 0 {
		p.Efficiency = efficiency(mean(rights))
		p.Diversity = min(1, max(0, 1-math.Abs(variation(rights)-0.3)/0.3))
	}
	p.Penalty = min(f.MaxPenalty, f.WordPenalty*float64(max(0, len(strings.Fields(prompt))-f.FreeWords)))
	p.Fitness = p.Accuracy
	if sum := f.Accuracy + f.Consistency + f.Efficiency + f.Diversity; f.By == "weighted" && sum > 0 {
		p.Fitness = max(0, (f.Accuracy*p.Accuracy+f.Consistency*p.Consistency+f.Efficiency*p.Efficiency+f.Diversity*p.Diversity)/sum-p.Penalty)
	}
	return p
}

// efficiency falls from 1 for right answers of 150 characters to 0.1.
func efficiency(length float64) float64 {
	if length <= 150 {
		return 1
	}
	return max(0.1, 1-(length-150)/1000)
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(max(1, len(xs)))
}

// variation is the standard deviation over the mean.
func variation(xs []float64) float64 {
	m := mean(xs)
	if m == 0 || len(xs) < 2 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum/float64(len(xs))) / m
}
