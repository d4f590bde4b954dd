package viewer

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/kit/files"
	"parley/internal/read/score"
	"parley/internal/run/control"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// Run is an open run. It may be used from several goroutines.
type Run struct {
	Name, Path string
	Store      *runfile.Store
	Growing    *growing // Store, for episodes that are being played
	Index      *results.Index
	Begun      *journal.Begun
	Kind       world.Kind // zero if it is unknown

	info fs.FileInfo   // of the file, when it was opened
	used time.Time     // when somebody looked at it; guarded by the library
	gone chan struct{} // closed with the run

	mu      sync.Mutex
	entries int               // of the run, when it was last looked at
	waiting map[chan int]bool // pages that wait for a change
	looked  chan struct{}     // wakes Follow: a page began to wait

	unlabelled bool
	labelling  sync.Mutex
	labels     *label.Set
	labelled   fileState // of the file with labels, when they were read

	searched atomic.Bool   // somebody searched it: Follow adds its texts to the index
	behind   atomic.Bool   // not all of them are in the index
	adding   chan struct{} // of the library: the texts of one run are added at a time

	statistics runStatistics // guarded by the statisticsCache

	scoring sync.Mutex
	added   *score.Set
	addedAt addedState
}

// addedState tells whether the scores that were added to a run have to be read again.
type addedState struct {
	files map[string]runFileState // of the runs of scorers, when they were read
	next  time.Time               // not before
}

// Added returns the scores that were added to the run, and brings them into its index. While they are changing, it reads them for
// at most a tenth of the time. If they cannot be read, there are none.
func (r *Run) Added(ctx context.Context) (*score.Set, error) {
	r.scoring.Lock()
	defer r.scoring.Unlock()
	files := map[string]runFileState{}
	all, _ := os.ReadDir(score.Folder(r.Path)) // Read says why it cannot be read
	for _, one := range all {
		files[one.Name()] = runFileStateOf(filepath.Join(score.Folder(r.Path), one.Name()))
	}
	began := time.Now()
	if r.added != nil && (maps.Equal(files, r.addedAt.files) || began.Before(r.addedAt.next)) {
		return r.added, nil
	}
	set, err := score.Read(ctx, r.Path, r.Begun.Run)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		set = &score.Set{} // the statistics of the run say why
	}
	if err := r.Index.SetAdded(set.By); err != nil {
		return nil, err
	}
	r.added, r.addedAt = set, addedState{files, time.Now().Add(10 * time.Since(began))}
	r.Tell()
	return set, nil
}

// Labels returns the labels of the run, and brings them into its index.
func (r *Run) Labels(ctx context.Context) (*label.Set, error) {
	if r.unlabelled {
		return &label.Set{}, nil
	}
	r.labelling.Lock()
	defer r.labelling.Unlock()
	state := fileStateOf(files.Beside(r.Path, label.Suffix))
	if r.labels != nil && state == r.labelled {
		return r.labels, nil
	}
	set, err := label.Read(ctx, r.Path, r.Begun.Run)
	if err != nil {
		return nil, err
	}
	if err := r.Index.SetLabels(labelsByEpisode(set)); err != nil {
		return nil, err
	}
	r.labels, r.labelled = set, state
	r.Tell()
	return set, nil
}

// relabel reads the labels and the added scores again if their files were changed.
func (r *Run) relabel(ctx context.Context) {
	_, _ = r.Labels(ctx) // the page that shows them says why they cannot be read
	_, _ = r.Added(ctx)  // the same
}

// How often a run file is looked at: while a page waits for changes, and otherwise.
const (
	watchedPause = 250 * time.Millisecond
	idlePause    = 2 * time.Second
)

// Follow keeps the index up to date, and tells pages that the run has grown, until ctx is done.
func (r *Run) Follow(ctx context.Context) {
	var state time.Time // of the live file; zero: there is none, or it is too old
	var played bool     // by a process
	for ctx.Err() == nil {
		if !r.there() { // Get closes it when a page asks for it
			r.Tell()
		}
		n, err := r.Store.Entries()
		if err == nil && n != r.seen() {
			_, err = r.Index.Update(ctx) // what cannot be read is shown by the page that asks for it
			if errors.Is(err, runfile.ErrDamaged) && r.Store.Lost() == nil && r.Store.Salvage(ctx) == nil {
				_, err = r.Index.Update(ctx)
			}
			r.grown(n)
		}
		r.relabel(ctx)
		_ = r.Index.MakeIndexes(ctx) // pages are slower without
		if at, now := liveChanged(files.Beside(r.Path, control.LiveSuffix)), runfile.Played(r.Path); at != state || now != played {
			state, played = at, now
			r.grown(r.seen())
		}
		pause := idlePause
		if err == nil && r.watched() {
			pause = watchedPause
		}
		var turn chan<- struct{}
		if r.behind.Load() {
			turn = r.adding
		}
		select {
		case <-ctx.Done():
		case <-r.gone:
			return
		case <-r.looked:
		case <-time.After(pause):
		case turn <- struct{}{}:
			r.addTexts(ctx)
			<-r.adding
		}
	}
}

// How many entries Follow adds to the texts of the index at once, and how long it pauses at least between two steps. It pauses as
// long as a step takes, and the other runs with it, so that pages and other programs get their share.
const (
	textsPerStep = 200
	textsPause   = 5 * time.Millisecond
)

// Search says that the run is searched: its texts are added to the index, a step now and the others in the background, also if no
// page asks for them. It returns how many entries of the run can be searched, and how many there are.
func (r *Run) Search(ctx context.Context, step int) (indexed, entries int, err error) {
	if indexed, err = r.Index.UpdateTexts(ctx, step); err == nil {
		entries, err = r.Store.Entries()
	}
	if err != nil {
		return indexed, entries, err
	}
	if indexed < entries {
		r.behind.Store(true)
	}
	if !r.searched.Swap(true) {
		select {
		case r.looked <- struct{}{}:
		default: // Follow has one to read
		}
	}
	return indexed, entries, nil
}

// addTexts adds some texts to the index, and pauses.
func (r *Run) addTexts(ctx context.Context) {
	began := time.Now()
	indexed, err := r.Index.UpdateTexts(ctx, textsPerStep)
	switch {
	case errors.Is(err, runfile.ErrDamaged) && r.Store.Lost() == nil && r.Store.Salvage(ctx) == nil: // what can be read is next
	case err != nil:
		r.behind.Store(false) // the next search says why
	default:
		r.behind.Store(indexed < r.seen())
	}
	select {
	case <-ctx.Done():
	case <-r.gone:
	case <-time.After(max(textsPause, time.Since(began))):
	}
}

// there reports whether the path still leads to the file that was opened.
func (r *Run) there() bool {
	info, err := os.Stat(r.Path)
	return err == nil && os.SameFile(info, r.info)
}

// Gone is closed when the run is closed, such as after its file was deleted.
func (r *Run) Gone() <-chan struct{} { return r.gone }

// liveChanged returns when a live file was changed, or the zero time if there is none or it is too old.
func liveChanged(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) > control.LiveMaxAge {
		return time.Time{}
	}
	return info.ModTime()
}

func (r *Run) seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries
}

// Indexed reports whether the index has had the whole run once.
func (r *Run) Indexed() bool { return r.seen() > 0 }

func (r *Run) watched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0
}

// grown tells pages that the run has n entries.
func (r *Run) grown(n int) {
	r.mu.Lock()
	if n != r.entries && r.searched.Load() {
		r.behind.Store(true)
	}
	r.entries = n
	r.mu.Unlock()
	r.Tell()
}

// Tell wakes the pages that wait.
func (r *Run) Tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.waiting {
		select {
		case c <- r.entries:
		default: // it has one to read
		}
	}
}

// Watch returns a channel that receives the number of entries when the run has grown.
func (r *Run) Watch() (changed <-chan int, end func()) {
	c := make(chan int, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[c] = true
	select {
	case r.looked <- struct{}{}:
	default: // Follow has one to read
	}
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, c)
	}
}

// maxGrowing is how many episodes of a run growing keeps, without the messages of their requests.
const maxGrowing = 4

// growing reads a run whose episodes are being played. A page that follows one reads it again at each change: Sparing reads
// only what is new since, and keeps the rest. It is safe for use by several goroutines. Those that read one episode wait for each other.
type growing struct {
	*runfile.Store
	since func(ctx context.Context, episode int, after int64) ([]journal.Entry, map[*journal.Replied]int64, int64, error) // of Store

	mu   sync.Mutex        // never held while something is read
	kept []*growingEpisode // the one that was looked at last is the last
}

// growingEpisode is what was read of an episode.
type growingEpisode struct {
	episode int
	reading chan struct{} // has one place, for who uses the rest
	entries []journal.Entry
	keys    map[*journal.Replied]int64
	last    int64 // entry
}

func newGrowing(store *runfile.Store) *growing { return &growing{Store: store, since: store.Since} }

// Sparing reads an episode as that of Store does.
func (g *growing) Sparing(ctx context.Context, episode int) (out []journal.Entry, fill func(...*journal.Replied) error, err error) {
	of := g.keep(episode)
	select {
	case of.reading <- struct{}{}:
		defer func() { <-of.reading }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	entries, keys, last, err := g.since(ctx, episode, of.last)
	if err != nil {
		of.entries, of.keys, of.last = nil, nil, 0 // what was read before may be wrong too
		return nil, nil, err
	}
	if of.keys == nil {
		of.keys = map[*journal.Replied]int64{}
	}
	of.entries, of.last = append(of.entries, entries...), last
	maps.Copy(of.keys, keys)
	out, copied := make([]journal.Entry, len(of.entries)), make(map[*journal.Replied]int64, len(of.keys))
	for i, e := range of.entries {
		if r, ok := e.(*journal.Replied); ok { // fill changes it
			one := *r
			copied[&one], e = of.keys[r], &one
		}
		out[i] = e
	}
	return out, func(replies ...*journal.Replied) error { return g.Fill(episode, copied, replies...) }, nil
}

// keep returns what is kept of an episode, which is little at first, and drops the episode that nobody looked at for longest.
func (g *growing) keep(episode int) *growingEpisode {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.drop(episode)
	if of == nil {
		of = &growingEpisode{episode: episode, reading: make(chan struct{}, 1)}
	}
	g.kept = append(g.kept, of)
	g.kept = slices.Delete(g.kept, 0, max(0, len(g.kept)-maxGrowing))
	return of
}

// drop removes what is kept of an episode, and returns it. g.mu is held.
func (g *growing) drop(episode int) *growingEpisode {
	i := slices.IndexFunc(g.kept, func(of *growingEpisode) bool { return of.episode == episode })
	if i < 0 {
		return nil
	}
	of := g.kept[i]
	g.kept = slices.Delete(g.kept, i, i+1)
	return of
}

// Forget drops what is kept of an episode, such as when it has ended. It does not wait for who reads it. A page that found the
// episode before its end and reads it after Forget keeps it again: until the next page, which forgets it too.
func (g *growing) Forget(episode int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(episode)
}
