package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	looks = time.Second // between looks at the server, or at the disk
	// needs is how much must fit on the disk before a node starts again.
	needs = 16 << 20
)

// Keep serves until ctx is done, and closes the hub. A node whose disk is full, or refuses writes, stores nothing any more. Keep then
// stops it, so that the others know, and starts it again when its folder can be written. It calls tell with what is wrong, and with nil
// when the node is back.
func (h *Hub) Keep(ctx context.Context, tell func(problem error)) error {
	for wait(ctx) {
		if len(h.config.Join) == 0 || h.server.Load().JetStreamEnabled() {
			continue
		}
		h.stop()
		why := room(h.config.Folder)
		tell(fmt.Errorf("node %s stopped: it cannot write to its folder %s%s. The others go on if two are left. Make room there for at least %d MB: the node then starts again by itself", h.config.Route, h.config.Folder, because(why), needs>>20))
		for wait(ctx) {
			if room(h.config.Folder) == nil && h.again() == nil {
				tell(nil)
				break
			}
		}
	}
	return h.Close()
}

// again starts the server once more. If it fails, it says why in the log.
func (h *Hub) again() error {
	o, err := h.options()
	if err == nil {
		err = h.start(o)
	}
	return err
}

// wait waits a moment. It returns false when ctx is done.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(looks):
		return true
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return " (" + err.Error() + ")"
}

// room writes a file into a folder and deletes it, to see whether there is room.
func room(folder string) (err error) {
	f, err := os.CreateTemp(folder, "room-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	part := make([]byte, 1<<20)
	for range needs / len(part) {
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return f.Sync()
}
