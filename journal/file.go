package journal

import (
	"context"
	"errors"
)

// ErrDamaged is about a run file of which something cannot be read. See File.
var ErrDamaged = errors.New("the run file is damaged")

// Opener reads run files. The world.Files that a kind loads its params from are an Opener, and so are the world.Runs of
// a command.
type Opener interface {
	// OpenRun opens a run file to read it, whether somebody plays it meanwhile or not.
	OpenRun(name string) (File, error)
}

// File is a run file that was opened to read it: nothing can be appended. InParts reads it in parts.
type File interface {
	Journal
	// Salvage leaves out the damaged episodes from now on. Call it where reading fails with ErrDamaged, and read again
	// from the beginning.
	Salvage(ctx context.Context) error
	Close() error
}
