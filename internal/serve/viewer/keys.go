// Part seats makes the page of a person's seat in a run that is played: what the seat was told, its question, and a
// form for the answer. It also has the keys of seats.
//
// A seat has its own key, so that its page can be given to a person who may see nothing else. The key is exchanged for a
// cookie that is valid for the pages of that seat only. Keys are derived from a random secret in the file RUN-keys
// beside the run, which only its user can read, so links outlast the viewer.
//
// It serves nothing: package viewer does.

package viewer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"parley/internal/kit/files"
)

// seatsSuffix is added to the name of a run file to name its file with the secret of its seats.
const seatsSuffix = "-keys"

// keys makes the keys of seats. Its zero value is ready to use.
type keys struct {
	mu      sync.Mutex
	secrets map[string]secret // by file of secrets
}

// secret is what the keys of a run are derived from.
type secret struct {
	text string
	lost error // why it is not in the file, and ends with the viewer
}

// key returns the key of a seat, and token the value of the cookie for which the key is exchanged.
func (s secret) key(seat string) string   { return derive(s.text, "key", seat) }
func (s secret) token(seat string) string { return derive(s.text, "cookie", seat) }

// same reports whether two keys or tokens are the same, in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func derive(secret, what, seat string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(what + "\x00" + seat))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:20])
}

// of returns the secret of a run file. A run whose links nobody has seen yet has none: ok is false.
func (k *keys) of(ctx context.Context, run string) (s secret, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	path := files.Beside(run, seatsSuffix)
	if s, ok = k.secrets[path]; ok {
		return s, true
	}
	text, err := read(ctx, path)
	if err != nil {
		return s, false
	}
	return k.put(path, secret{text: text}), true
}

// create returns the secret of a run file, and makes one if it has none. If it cannot be kept in its file, it is valid
// until the viewer ends.
func (k *keys) create(ctx context.Context, run string) secret {
	if s, ok := k.of(ctx, run); ok {
		return s
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	path := files.Beside(run, seatsSuffix)
	if s, ok := k.secrets[path]; ok {
		return s
	}
	fresh := rand.Text()
	text, err := keep(ctx, path, fresh)
	if err != nil {
		text = fresh
	}
	return k.put(path, secret{text, err})
}

func (k *keys) put(path string, s secret) secret {
	if k.secrets == nil {
		k.secrets = map[string]secret{}
	}
	k.secrets[path] = s
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
	return read(ctx, path)
}

// read returns the secret in a file. Only a file of this user counts that nobody else can read or write: others could
// know the secret, or have written it.
func read(ctx context.Context, path string) (_ string, err error) {
	link, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !files.Private(link) {
		return "", fmt.Errorf("%s is not a regular file of yours that only you can read (mode 0600)", path)
	}
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || !os.SameFile(info, link) {
		return "", errors.Join(fmt.Errorf("%s was replaced while it was read", path), err)
	}
	b, err := files.ReadAll(ctx, f, path, 1<<10)
	text := strings.TrimSpace(string(b))
	if err == nil && len(text) < len(rand.Text()) {
		err = fmt.Errorf("%s is too short to be a secret", path)
	}
	return text, err
}
