// Package seats makes the page of a person's seat in a run that is played: what the seat was told, its question, and a
// form for the answer. It also has the keys of seats.
//
// A seat has its own key, so that its page can be given to a person who may see nothing else. The key is exchanged for a
// cookie that is valid for the pages of that seat only. Keys are derived from a random secret in the file RUN-keys
// beside the run, which only its user can read, so links outlast the viewer.
//
// It serves nothing: package viewer does.
package seats

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"parley/internal/files"
)

// Suffix is added to the name of a run file to name its file with the secret of its seats.
const Suffix = "-keys"

// keys makes the keys of seats. Its zero value is ready to use.
type keys struct {
	mu      sync.Mutex
	secrets map[string]string // by run file
}

// key returns the key of a seat.
func (k *keys) key(ctx context.Context, run, seat string) string {
	return derive(k.secret(ctx, run), "key", seat)
}

// token returns the value of the cookie for which the key of a seat is exchanged.
func (k *keys) token(ctx context.Context, run, seat string) string {
	return derive(k.secret(ctx, run), "cookie", seat)
}

// same reports whether two keys or tokens are the same, in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func derive(secret, what, seat string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(what + "\x00" + seat))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:20])
}

// secret returns the secret of a run. If it cannot be kept in a file, it is valid until the viewer ends.
func (k *keys) secret(ctx context.Context, run string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.secrets[run]; s != "" {
		return s
	}
	s := rand.Text()
	if kept, err := keep(ctx, run+Suffix, s); err == nil {
		s = kept
	}
	if k.secrets == nil {
		k.secrets = map[string]string{}
	}
	k.secrets[run] = s
	return s
}

// keep writes a new secret to a file, unless the file has one, and returns the secret that it has.
func keep(ctx context.Context, path, fresh string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.WriteString(fresh + "\n")
		return fresh, errors.Join(err, f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	b, err := files.Read(ctx, path, 1<<10)
	old := strings.TrimSpace(string(b))
	if err == nil && len(old) < len(fresh) {
		err = errors.New("it is too short to be a secret")
	}
	return old, err
}
