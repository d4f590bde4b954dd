//go:build !unix

package bulk

import "os"

// replace puts the file tmp in the place of o's, which must be closed for it.
func replace(o *outFile, tmp string) error {
	if err := o.close(); err != nil {
		return err
	}
	return os.Rename(tmp, o.path)
}
