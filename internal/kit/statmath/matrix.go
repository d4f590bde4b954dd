package statmath

import "math"

// matrix is a square matrix, by rows.
type matrix [][]float64

func newMatrix(n int) matrix {
	m, all := make(matrix, n), make([]float64, n*n)
	for i := range m {
		m[i] = all[i*n : (i+1)*n : (i+1)*n]
	}
	return m
}

// by returns m times o.
func (m matrix) by(o matrix) matrix {
	out := newMatrix(len(m))
	for i, row := range m {
		for k, x := range row {
			for j, y := range o[k] {
				out[i][j] += x * y
			}
		}
	}
	return out
}

// times returns m with every element multiplied by x.
func (m matrix) times(x float64) matrix {
	out := newMatrix(len(m))
	for i, row := range m {
		for j, y := range row {
			out[i][j] = x * y
		}
	}
	return out
}

// trace returns the sum of the diagonal.
func (m matrix) trace() float64 {
	sum := 0.0
	for i := range m {
		sum += m[i][i]
	}
	return sum
}

// cholesky returns the lower triangle l with l times its transpose equal to m, which is symmetric. It returns nil if m is not
// positive definite, or so nearly singular that no digit of a solution would be right.
func (m matrix) cholesky() matrix {
	rounding := float64(len(m)) * 0x1p-50 // of all differences together
	l := newMatrix(len(m))
	smallest, largest := math.Inf(1), 0.0
	for i := range m {
		for j := range i + 1 {
			sum := m[i][j]
			for k := range j {
				sum -= l[i][k] * l[j][k]
			}
			if i != j {
				l[i][j] = sum / l[j][j]
				continue
			}
			smallest, largest = min(smallest, sum), max(largest, sum)
			if !(smallest > rounding*largest) {
				return nil
			}
			l[i][i] = math.Sqrt(sum)
		}
	}
	return l
}

// solve returns x such that m, a lower triangle, times its transpose times x is b.
func (m matrix) solve(b []float64) []float64 {
	x := make([]float64, len(b))
	for i := range x {
		sum := b[i]
		for k := range i {
			sum -= m[i][k] * x[k]
		}
		x[i] = sum / m[i][i]
	}
	for i := len(x) - 1; i >= 0; i-- {
		sum := x[i]
		for k := i + 1; k < len(x); k++ {
			sum -= m[k][i] * x[k]
		}
		x[i] = sum / m[i][i]
	}
	return x
}
