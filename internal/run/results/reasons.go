package results

// Reasons counts why things failed, by sort. The zero value counts nothing yet.
type Reasons struct {
	count map[string]int
	first map[string]string // of each sort
}

// maxSorts limits how many sorts are counted: reasons may be anything.
const maxSorts = 1000

// Add counts a reason.
func (r *Reasons) Add(why string) {
	sort := sortOf(why)
	if r.count == nil {
		r.count, r.first = map[string]int{}, map[string]string{}
	}
	if _, known := r.first[sort]; !known {
		if len(r.first) == maxSorts {
			return
		}
		r.first[sort] = oneLine(why)
	}
	r.count[sort]++
}

// Commonest returns the first reason of the most common sort, as one line of limited length, and how many are of this sort.
func (r *Reasons) Commonest() (why string, n int) {
	for sort, times := range r.count {
		if first := r.first[sort]; times > n || times == n && first < why {
			why, n = first, times
		}
	}
	return why, n
}
