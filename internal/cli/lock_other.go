//go:build !unix

package cli

import "os"

// lock does nothing where the standard library has no advisory locks: there it is
// up to the user not to run twice at once into one file.
func lock(*os.File) error { return nil }

// replace puts the file tmp in the place of o's, which must be closed for it.
func replace(o *outFile, tmp string) error {
	if err := o.close(); err != nil {
		return err
	}
	return os.Rename(tmp, o.path)
}
