package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"parley/internal/files"
)

// position is the position of a client without a cursor, kept in a file.
type position struct {
	path   string // empty: in memory only
	Cursor string `json:"cursor"`
}

// maxPosition is the maximum size of the file.
const maxPosition = 64 << 10

func openPosition(path string) (*position, error) {
	p := &position{path: path}
	if path == "" {
		return p, nil
	}
	b, err := files.Read(context.Background(), path, maxPosition)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err == nil:
		// Another file of that name must not be overwritten.
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		err = dec.Decode(p)
	}
	if err != nil {
		return nil, fmt.Errorf("trainer: %s: how far /get_rollout_data has come cannot be read: %w: move it away to begin at the start", path, err)
	}
	return p, nil
}

// save makes a position durable: the file has the old or the new one, never a part.
func (p *position) save(cursor string) (err error) {
	if p.Cursor == cursor {
		return nil
	}
	next := position{path: p.path, Cursor: cursor}
	defer func() {
		if err == nil {
			*p = next
		} else {
			err = fmt.Errorf("trainer: how far /get_rollout_data has come: %w", err)
		}
	}()
	if p.path == "" {
		return nil
	}
	b, err := json.Marshal(next)
	if err != nil {
		return err
	}
	return files.Replace(p.path, 0o600, append(b, '\n'))
}
