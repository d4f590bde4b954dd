// Part optional calls the optional parts of kinds, such as Story, for readers.

package results

import (
	"fmt"

	"parley/world"
)

// Call calls a part of a kind. A panic in it becomes an error that names the kind and the part,
// so that the reader can continue without the part.
func Call(kind world.Kind, name string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the kind %s: %s panicked: %v", kind.Name, name, p)
		}
	}()
	if err := call(); err != nil {
		return fmt.Errorf("the kind %s: %s: %w", kind.Name, name, err)
	}
	return nil
}
