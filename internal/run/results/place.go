package results

// Place is where a window of lines begins: at a line, after an entry of the journal. With a negative entry, the window
// ends with that entry, and the line follows it. Entry 0 is unknown: then everything is read, except for line 0.
type Place struct {
	Line  int // negative: the window has the last lines
	Entry int64
}

// Around is where a window is: the number of its first line, and the windows after and before it; nil: there are none.
type Around struct {
	From       int
	Next, Prev *Place
}

// Window returns a window of about so many lines. In a part of an episode it begins and ends between turns if it can:
// their entries say where.
func (p *Part) Window(at Place, limit int) ([]Line, Around) {
	first, end, number := p.window(at, limit)
	around := Around{From: number}
	if end < len(p.Lines) || !p.Last {
		around.Next = &Place{Line: number + end - first}
		if p.Partial() {
			around.Next.Entry = p.endOfTurn(end)
		}
	}
	if first > 0 || !p.First {
		around.Prev = &Place{Line: max(0, number-limit)}
		if entry := p.endOfTurn(first); p.Partial() && entry != 0 {
			around.Prev = &Place{number, -entry}
		}
	}
	return p.Lines[first:end], around
}

// window returns the lines of a window in what was read, and the number of the first.
func (p *Part) window(at Place, limit int) (first, end, number int) {
	total := len(p.Lines)
	switch {
	case p.Partial() && at.Entry < 0:
		end = p.after(-at.Entry)
		first = max(0, end-limit)
		for n := first; n < end; n++ {
			if n == 0 && p.First || p.endOfTurn(n) != 0 {
				first = n
				break
			}
		}
		return first, end, max(0, at.Line-(end-first))
	case p.Partial():
		first = p.after(at.Entry)
		end = min(total, first+limit)
		for n := end; n > first && end < total; n-- {
			if p.endOfTurn(n) != 0 {
				return first, n, at.Line
			}
		}
		return first, end, at.Line
	case at.Line < 0:
		first = (max(0, total-1) / limit) * limit
	case at.Entry < 0:
		first = max(0, at.Line-limit)
	default:
		first = at.Line
	}
	first = min(first, max(0, total-1))
	return first, min(total, first+limit), first
}
