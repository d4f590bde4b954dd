package journal

import (
	"context"
	"errors"
)

// ErrDamaged means that a part of a run file cannot be read. See File.
var ErrDamaged = errors.New("the run file is damaged")

// Opener opens run files. The world.Files that a kind loads its params from are an Opener.
type Opener interface {
	// OpenRun opens a run file for reading, even while another process plays it.
	OpenRun(name string) (File, error)
}

// File is a run file that is open for reading: nothing can be appended. InParts reads it in parts.
type File interface {
	Journal
	// Salvage leaves out the damaged episodes from now on. Call it if reading fails with
	// ErrDamaged, and read again from the beginning.
	Salvage(ctx context.Context) error
	Close() error
}
