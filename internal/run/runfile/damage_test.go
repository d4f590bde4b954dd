package runfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/kit/testkit"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/world"
)

// playedEpisodes is how many episodes the file of playedFile has. The last is not played, and the one before not to its end. There are just
// enough for inner pages.
const playedEpisodes = 7

// played is the file of a run that all tests damage copies of, and everything that can be read of it.
var played struct {
	once  sync.Once
	file  []byte
	whole map[string]string
}

// playedFile returns the file of a run, with some episodes played twice.
func playedFile(t *testing.T) []byte {
	t.Helper()
	played.once.Do(func() {
		path := filepath.Join(t.TempDir(), "run.db")
		playInto(t, mustOpen(t, path, Create))
		played.file, played.whole = readFile(t, path), wholeOf(t, path)
	})
	return played.file
}

func playInto(t *testing.T, s *Store) {
	t.Helper()
	const ended = playedEpisodes - 2
	if _, err := engine.Run(t.Context(), benchRun(s, ended)); err != nil {
		t.Fatal(err)
	}
	block := &journal.Staged{Stage: 1, First: ended, Specs: world.Repeat(world.Spec{Kind: "secrets"}, 2)}
	mustAppend(t, s, block, talk(ended, 0)[0], talk(ended, 0)[1]) // one is being played, one waits
	closed(t, s)
}

// surfaces returns everything that can be read of a run file: by episode, and "" for the whole run.
// What cannot be read is an error.
func surfaces(t *testing.T, s *Store, episodes int) (map[string]string, error) {
	t.Helper()
	ctx := t.Context()
	out := map[string]string{}
	var b strings.Builder
	write := func(v any) {
		text, err := json.Marshal(v)
		if err != nil { // part of what is damaged may come with the error that says so
			text = []byte(err.Error())
		}
		fmt.Fprintf(&b, "%T %s\n", v, text)
	}
	each := func(e journal.Entry) error { write(e); return nil }
	about, err := s.Outline(ctx)
	write(about)
	head, herr := s.Head(ctx)
	write(head)
	ends, eerr := s.Ends(ctx, 0)
	write(ends)
	list, lerr := s.List(ctx, Listing{})
	write(list)
	failed, ferr := s.List(ctx, Listing{State: Failed})
	write(failed)
	err = errors.Join(err, herr, eerr, lerr, ferr, s.Brief(ctx, each), s.Read(ctx, journal.Whole(), each))
	for _, prompts := range []bool{false, true} {
		err = errors.Join(err, s.Replies(ctx, 0, prompts, func(r Recorded) error { write(r); return nil }))
	}
	for i := range list {
		spent, serr := s.Spent(ctx, &list[i])
		write(spent)
		err = errors.Join(err, serr)
	}
	err = errors.Join(err, s.Read(ctx, journal.Span{To: episodes, Replay: true}, each))
	out[""] = b.String()
	for n := range episodes {
		b.Reset()
		if rerr := s.Read(ctx, journal.Span{From: n, To: n + 1}, each); rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		out[fmt.Sprint(n)] = b.String()
	}
	return out, err
}

// damagedFile is a run file that is damaged in many ways.
type damagedFile struct {
	t      *testing.T
	path   string
	whole  map[string]string // the original contents
	quiet  int               // how often nothing was noticed, because nothing differs
	named  int               // how often episodes were named
	beyond int               // how often the file could not be read at all
}

// check checks that a damaged file is read correctly, or that the damage is reported and all other
// episodes are read correctly.
func (d *damagedFile) check(what string, file []byte) {
	d.t.Helper()
	writeFile(d.t, d.path, file)
	s, err := OpenRead(d.path)
	if err != nil {
		d.refused(what, err)
		return
	}
	defer s.Close()
	got, err := surfaces(d.t, s, playedEpisodes)
	if err == nil {
		d.quiet++
		if !maps.Equal(got, d.whole) {
			d.t.Errorf("%s: what is read is different, and nothing was said:\n%s", what, testkit.Difference(got[""], d.whole[""]))
		}
		return
	}
	if !isDamage(err) || !strings.Contains(err.Error(), d.path) {
		d.t.Errorf("%s: the error should name the file and say that it is damaged: %v", what, err)
	}
	found, verr := s.Verify(d.t.Context())
	if verr != nil || found.fatal != nil {
		d.refused(what, errors.Join(verr, err))
		return
	}
	if len(found.Damage) == 0 {
		d.t.Errorf("%s: verify finds nothing, but reading does: %v", what, err)
	}
	d.named++
	d.rest(what, s)
}

func (d *damagedFile) refused(what string, err error) {
	d.t.Helper()
	d.beyond++
	if !strings.Contains(err.Error(), d.path) {
		d.t.Errorf("%s: the error should name the file: %v", what, err)
	}
}

// rest checks that undamaged episodes are read correctly.
func (d *damagedFile) rest(what string, s *Store) {
	d.t.Helper()
	if err := s.Salvage(d.t.Context()); err != nil {
		d.t.Errorf("%s: %v", what, err)
		return
	}
	lost := s.Lost()
	list, err := s.List(d.t.Context(), Listing{})
	_, herr := s.Head(d.t.Context())
	berr := s.Brief(d.t.Context(), func(journal.Entry) error { return nil })
	rerr := s.Replies(d.t.Context(), 0, true, func(r Recorded) error {
		if lost.Has(r.Episode) {
			d.t.Errorf("%s: a reply of the damaged episode %d is read", what, r.Episode)
		}
		return nil
	})
	if err := errors.Join(err, herr, berr, rerr); err != nil || len(list) != playedEpisodes-len(lost.Damaged) {
		d.t.Errorf("%s: %d episodes are listed without %v: %v", what, len(list), lost.Damaged, err)
	}
	for n := range playedEpisodes {
		var b strings.Builder
		err := s.Read(d.t.Context(), journal.Span{From: n, To: n + 1}, func(e journal.Entry) error {
			text, err := json.Marshal(e)
			fmt.Fprintf(&b, "%T %s\n", e, text)
			return err
		})
		if !lost.Has(n) && (err != nil || b.String() != d.whole[fmt.Sprint(n)]) {
			d.t.Errorf("%s: episode %d is not named and not as it was: %v", what, n, err)
		}
	}
}

func newDamaged(t *testing.T) (*damagedFile, []byte) {
	t.Helper()
	file := playedFile(t)
	path := filepath.Join(t.TempDir(), "run.db")
	return &damagedFile{t: t, path: path, whole: played.whole}, file
}

// wholeOf reads a run file before it is damaged.
func wholeOf(t *testing.T, path string) map[string]string {
	t.Helper()
	s, err := OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := surfaces(t, s, playedEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.Verify(t.Context()); err != nil || len(found.Damage) > 0 {
		t.Fatalf("a file that is whole is found damaged: %+v, %v", found, err)
	}
	closed(t, s)
	return whole
}

// TestFlipped: a flipped bit anywhere in a run file is noticed, or changes nothing. Episodes that are
// not reported are read correctly.
func TestFlipped(t *testing.T) {
	t.Parallel()
	atLength(t)
	d, file := newDamaged(t)
	d.flip(file, 100)
}

// flip checks so many flipped bits of a file, or ten times as many with PARLEY_SWEEP, which .ci/run kills sets.
func (d *damagedFile) flip(file []byte, times int) {
	d.t.Helper()
	if os.Getenv("PARLEY_SWEEP") != "" {
		times *= 10
	}
	r := rand.New(rand.NewPCG(14, 12))
	for range times {
		bit := r.IntN(8 * len(file))
		spoiled := slices.Clone(file)
		spoiled[bit/8] ^= 1 << (bit % 8)
		d.check(fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), spoiled)
	}
	if d.named == 0 || d.quiet == 0 {
		d.t.Errorf("%d flips made no difference, %d were named and %d made the file unreadable", d.quiet, d.named, d.beyond)
	}
	d.t.Logf("%d flips made no difference, %d were named, %d made the file unreadable", d.quiet, d.named, d.beyond)
}

// atLength skips tests that read damaged files one after the other, in one goroutine: the race detector finds nothing in
// them, and makes them ten times slower.
func atLength(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
}

// TestFlippedPages is TestFlipped for the structure of pages: headers, offsets of rows, and inner
// pages.
func TestFlippedPages(t *testing.T) {
	t.Parallel()
	atLength(t)
	d, file := newDamaged(t)
	r := rand.New(rand.NewPCG(15, 12))
	for page := 0; page < len(file); page += PageSize {
		for range 3 {
			at := page + r.IntN(64)
			spoiled := slices.Clone(file)
			spoiled[at] ^= 1 << r.IntN(8)
			d.check(fmt.Sprintf("byte %d of page %d", at-page, page/PageSize+1), spoiled)
		}
	}
	t.Logf("%d flips made no difference, %d were named, %d made the file unreadable", d.quiet, d.named, d.beyond)
}

// TestSpoiledRows: rows that another program changed, deleted, moved or added are noticed.
func TestSpoiledRows(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"a word":             `UPDATE texts SET text = text || '.' WHERE id = 3`,
		"a text of another":  `UPDATE texts SET text = (SELECT text FROM texts WHERE id = 4), sum = (SELECT sum FROM texts WHERE id = 4) WHERE id = 3`,
		"a text is lost":     `DELETE FROM texts WHERE id = 5`,
		"a cost":             `UPDATE replies SET cost = cost + 1 WHERE seq = (SELECT max(seq) FROM replies)`,
		"a seat":             `UPDATE replies SET seat = 'nobody' WHERE seq = (SELECT min(seq) FROM replies)`,
		"a prompt":           `UPDATE replies SET prompt = '[1]', roles = 's' WHERE seq = (SELECT max(seq) FROM replies)`,
		"a reply is lost":    `DELETE FROM replies WHERE seq = (SELECT min(seq) FROM replies)`,
		"a reply is moved":   `UPDATE replies SET seq = 1000000 WHERE seq = (SELECT min(seq) FROM replies)`,
		"a last reply":       `DELETE FROM replies WHERE seq = (SELECT max(seq) FROM replies)`,
		"replies swapped":    `CREATE TEMP TABLE two AS SELECT seq FROM replies ORDER BY seq LIMIT 2; UPDATE replies SET seq = -seq WHERE seq IN two; UPDATE replies SET seq = (SELECT sum(seq) FROM two) + seq WHERE seq < 0`,
		"a turn":             `UPDATE turns SET digest = zeroblob(16) WHERE seq = (SELECT min(seq) FROM turns)`,
		"a turn is lost":     `DELETE FROM turns WHERE seq = (SELECT max(seq) FROM turns)`,
		"an outcome":         `UPDATE outcomes SET failed = 'it did' WHERE episode = 3`,
		"an outcome is lost": `DELETE FROM outcomes WHERE episode = 3`,
		"an episode":         `UPDATE specs SET deal = deal + 1 WHERE episode = 4`,
		"an episode is lost": `DELETE FROM specs WHERE episode = 4`,
		"a block":            `UPDATE specs SET rounds = 3 WHERE episode = 5`,
		"a block is lost":    `DELETE FROM specs WHERE episode = 5`,
		"progress":           `UPDATE progress SET ended = 0 WHERE episode = 2`,
		"progress is lost":   `DELETE FROM progress WHERE episode = 2`,
		"a stage":            `UPDATE stages SET count = count - 1`,
		"an event is lost":   `DELETE FROM events WHERE what = 'opened'`,
		"the beginning":      `DELETE FROM events WHERE what = 'begun'`,
		"the state":          `UPDATE state SET spent = spent + 1`,
		"no state":           `DELETE FROM state`,
		"a column":           `ALTER TABLE replies ADD COLUMN more`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, file := newDamaged(t)
			path := filepath.Join(t.TempDir(), "run.db")
			writeFile(t, path, file)
			script(t, path, sql+";")
			d.check(name, readFile(t, path))
			if d.quiet > 0 {
				t.Error("nothing was noticed")
			}
			if s, err := Open(t.Context(), path, Resume); err == nil {
				// Resuming fails if it needs damaged data.
				_, err := engine.Run(t.Context(), benchRun(s, playedEpisodes-2))
				if err == nil && name == "progress" {
					t.Error("it was resumed")
				}
				_ = s.Close()
			}
		})
	}
}

// TestNamed: if a call is damaged, only its episode is reported.
func TestNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	writeFile(t, path, playedFile(t))
	script(t, path, `UPDATE replies SET label = 'x' WHERE seq = (SELECT max(seq) FROM replies WHERE episode = 2);
		UPDATE texts SET text = text || '.' WHERE id = (SELECT answer FROM replies WHERE episode = 4 AND turn = 11);`)
	s, err := OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	found, err := s.Verify(t.Context())
	if err != nil || !slices.Equal(found.Damaged, []int{2, 4}) {
		t.Fatalf("%+v, %v; want the episodes 2 and 4", found, err)
	}
	if _, err := journal.Episode(t.Context(), s, 2); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "episode 2") || !strings.Contains(err.Error(), "parley check") {
		t.Errorf("the error should name the episode and the remedy: %v", err)
	}
	if _, err := journal.Episode(t.Context(), s, 3); err != nil {
		t.Errorf("the others are read: %v", err)
	}
}

// FuzzDamaged: no file makes the program panic.
func FuzzDamaged(f *testing.F) {
	f.Add(uint32(20000), []byte{1, 2, 3})
	f.Add(uint32(0), []byte("SQLite format 3"))
	f.Add(uint32(100), make([]byte, 300))
	var file []byte
	f.Fuzz(func(t *testing.T, at uint32, b []byte) {
		if file == nil {
			file = playedFile(t)
		}
		spoiled := slices.Clone(file)
		copy(spoiled[int(at)%len(spoiled):], b)
		path := filepath.Join(t.TempDir(), "run.db")
		writeFile(t, path, spoiled)
		s, err := OpenRead(path)
		if err != nil {
			return
		}
		defer s.Close()
		_, _ = surfaces(t, s, playedEpisodes)
		if err := s.Salvage(t.Context()); err == nil {
			_, _ = surfaces(t, s, playedEpisodes)
		}
	})
}

// TestOverwrittenPages: if SQLite cannot read a page, the episodes that it held are named, and the others are read.
func TestOverwrittenPages(t *testing.T) {
	t.Parallel()
	d, file := newDamaged(t)
	last := len(file)/PageSize - 1
	for _, n := range []int{last - 1, last} {
		spoiled := slices.Clone(file)
		copy(spoiled[n*PageSize:], bytes.Repeat([]byte{0xff}, PageSize))
		d.check(fmt.Sprintf("page %d is overwritten", n+1), spoiled)
	}
	if d.named != 2 {
		t.Errorf("%d were named, and %d made the file unreadable", d.named, d.beyond)
	}
}

// TestSpoiledPages: empty, swapped and missing pages are noticed. Each page is damaged in one of these ways, or with PARLEY_SWEEP in all.
func TestSpoiledPages(t *testing.T) {
	t.Parallel()
	atLength(t)
	d, file := newDamaged(t)
	page := func(b []byte, n int) []byte { return b[n*PageSize : (n+1)*PageSize] }
	pages := len(file) / PageSize
	for n := range pages {
		for way := range 3 {
			spoiled := slices.Clone(file)
			switch {
			case way != n%3 && os.Getenv("PARLEY_SWEEP") == "":
			case way == 0:
				clear(page(spoiled, n))
				d.check(fmt.Sprintf("page %d is empty", n+1), spoiled)
			case way == 1 && n > 0:
				copy(page(spoiled, n), page(file, 1+n%(pages-1)))
				d.check(fmt.Sprintf("page %d is another", n+1), spoiled)
			case way == 2:
				d.check(fmt.Sprintf("cut at page %d", n+1), file[:n*PageSize+n])
			}
		}
	}
	if d.named == 0 || d.beyond == 0 {
		t.Errorf("%d were named and %d made the file unreadable", d.named, d.beyond)
	}
}
