package evolve

import (
	"math"
	"strings"
)

// Fitness holds the params that decide how fit a prompt is.
type Fitness struct {
	By          string  `json:"by" doc:"weighted: the sum of the parts by weight, less a penalty for length; accuracy: that alone." oneof:"weighted,accuracy"`
	Accuracy    float64 `json:"accuracy" doc:"The weight of the share of problems that are solved."`
	Consistency float64 `json:"consistency" doc:"The weight of answers of even length that can be read."`
	Efficiency  float64 `json:"efficiency" doc:"The weight of right answers that are short."`
	Diversity   float64 `json:"diversity" doc:"The weight of right answers that are not all of one length."`
	FreeWords   int     `json:"free_words" doc:"How many words of a prompt cost nothing."`
	WordPenalty float64 `json:"word_penalty" doc:"What each further word costs."`
	MaxPenalty  float64 `json:"max_penalty" doc:"The most that length costs."`
}

// Parts are the parts of a fitness. All except the penalty are from 0 to 1.
type Parts struct {
	Fitness     float64 `json:"fitness"`
	Accuracy    float64 `json:"accuracy"`
	Consistency float64 `json:"consistency"`
	Efficiency  float64 `json:"efficiency"`
	Diversity   float64 `json:"diversity"`
	Penalty     float64 `json:"penalty"`
	// Problems is the number of problems with an answer. The other parts are over these.
	Problems int `json:"problems"`
}

// Parts computes the fitness of a prompt from its results. Failed calls do not count, and neither do problems without
// an answer.
func (f Fitness) Parts(results []Result, prompt string) Parts {
	var p Parts
	var lengths, rights []float64
	read := 0.0
	for _, r := range results {
		x, ok := r.Score()
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
		p.Efficiency = efficiency(recordMean(rights))
		p.Diversity = min(1, max(0, 1-math.Abs(variation(rights)-0.3)/0.3))
	}
	p.Penalty = min(f.MaxPenalty, f.WordPenalty*float64(max(0, len(strings.Fields(prompt))-f.FreeWords)))
	p.Fitness = p.Accuracy
	if sum := f.Accuracy + f.Consistency + f.Efficiency + f.Diversity; f.By == "weighted" && sum > 0 {
		p.Fitness = max(0, (f.Accuracy*p.Accuracy+f.Consistency*p.Consistency+f.Efficiency*p.Efficiency+f.Diversity*p.Diversity)/sum-p.Penalty)
	}
	return p
}

// efficiency is 1 for right answers of up to 150 characters, and falls to 0.1 for longer ones.
func efficiency(length float64) float64 {
	if length <= 150 {
		return 1
	}
	return max(0.1, 1-(length-150)/1000)
}

// recordMean returns the mean of xs, or 0 without any.
func recordMean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(max(1, len(xs)))
}

// variation returns the standard deviation divided by the mean.
func variation(xs []float64) float64 {
	m := recordMean(xs)
	if m == 0 || len(xs) < 2 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum/float64(len(xs))) / m
}
