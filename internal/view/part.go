package view

import (
	"fmt"

	"parley/world"
)

// CallPart calls a part that a kind brings for readers, such as Story. A panic in it becomes an error that names the
// kind and the part, so that a reader goes on without it.
func CallPart(kind world.Kind, part string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the kind %s: %s panicked: %v", kind.Name, part, p)
		}
	}()
	if err := call(); err != nil {
		return fmt.Errorf("the kind %s: %s: %w", kind.Name, part, err)
	}
	return nil
}
