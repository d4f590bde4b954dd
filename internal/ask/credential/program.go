package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/fault"
)

// runProgram runs a program and returns what it printed. The error tells its exit status and the beginning of what it said on
// standard error, where programs explain themselves.
func runProgram(ctx context.Context, command []string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, programTimeout, errSlow)
	defer cancel()
	var stdout, stderr limitedBuffer
	stdout.max, stderr.max = maxPrint, 4<<10
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the user allowed it: see package trust
	if cmd.Dir, _ = os.UserHomeDir(); cmd.Dir == "" {           // not the folder of a plan: it may hold a stranger's key.py
		cmd.Dir = os.TempDir()
	}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, 2*time.Second
	err := cmd.Run()
	var status *exec.ExitError
	switch {
	case errors.Is(context.Cause(ctx), errSlow):
		return nil, errSlow
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("the program is not found: install it, or name it with its whole path")
	case errors.As(err, &status):
		return nil, fmt.Errorf("%w%s", status, says(stderr.b))
	case err != nil:
		return nil, fmt.Errorf("it cannot be run: %w", err)
	case stdout.more:
		return nil, fmt.Errorf("it printed more than %d KB: want the key alone, or a JSON object with it", maxPrint>>10)
	}
	return stdout.b, nil
}

var errSlow = fmt.Errorf("it did not end within %v", programTimeout)

// says returns what a program said on standard error, as the end of a message. What looks like a key is left out.
func says(stderr []byte) string {
	text := string(stderr)
	for _, secret := range provider.Secrets(text) {
		text = strings.ReplaceAll(text, secret, "[key]")
	}
	if text = fault.Clean(strings.Join(strings.Fields(text), " "), 300); text == "" {
		return ""
	}
	return ": " + text
}

// limitedBuffer keeps the first bytes that are written to it.
type limitedBuffer struct {
	b    []byte
	max  int
	more bool
}

func (h *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), h.max-len(h.b))
	h.b = append(h.b, p[:n]...)
	h.more = h.more || n < len(p)
	return len(p), nil
}

// printed is the JSON object that a program may print instead of a key: as ours, OAuth 2.0's, and that of the Azure CLI.
type printed struct {
	Key         string `json:"key"`
	Token       string `json:"token"`
	AccessToken string `json:"access_token"`
	Azure       string `json:"accessToken"`

	At    json.RawMessage `json:"expires_at"`
	In    json.RawMessage `json:"expires_in"`
	On    json.RawMessage `json:"expires_on"`
	Local json.RawMessage `json:"expiresOn"`
}

// parse reads what a program printed: a key, or a JSON object. No error repeats any of it.
func parse(out []byte, now time.Time) (*Key, error) {
	out = bytes.TrimSpace(out)
	k := &Key{Value: string(out), at: now}
	if len(out) > 0 && out[0] == '{' {
		var p printed
		if err := json.Unmarshal(out, &p); err != nil {
			return nil, errors.New("it printed invalid JSON: want the key alone, or a JSON object with it")
		}
		for _, k.Value = range []string{p.Key, p.Token, p.AccessToken, p.Azure} {
			if k.Value = strings.TrimSpace(k.Value); k.Value != "" {
				break
			}
		}
		if k.Value == "" {
			return nil, errors.New("it printed a JSON object without key, token or access_token")
		}
		var err error
		if k.expires, err = p.expires(now); err != nil {
			return nil, err
		}
	}
	switch {
	case k.Value == "":
		return nil, errors.New("it printed nothing: want the key on standard output")
	case len(k.Value) > maxKey:
		return nil, fmt.Errorf("it printed more than %d KB: want the key alone, or a JSON object with it", maxKey>>10)
	case strings.Contains(k.Value, "\n"):
		return nil, errors.New("it printed more than one line: want the key alone, or a JSON object with it")
	case !printable(k.Value):
		return nil, errors.New("it printed a character that no key has")
	case !k.expires.IsZero() && !k.expires.After(now):
		return nil, errors.New("the key that it printed has expired")
	}
	k.plan(now)
	return k, nil
}

// expires returns when the key expires, or the zero time. The Azure CLI prints the same moment twice; expiresOn is the
// local time without a zone.
func (p *printed) expires(now time.Time) (time.Time, error) {
	for _, field := range []struct {
		name string
		raw  json.RawMessage
	}{{"expires_at", p.At}, {"expires_in", p.In}, {"expires_on", p.On}, {"expiresOn", p.Local}} {
		text := strings.TrimSpace(strings.Trim(string(field.raw), `"`))
		if text == "" || text == "null" {
			continue
		}
		if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < 1e11 {
			if field.name == "expires_in" {
				return now.Add(time.Duration(min(n, 1e9) * float64(time.Second))), nil
			}
			return time.Unix(int64(n), 0), nil
		}
		if t, err := time.Parse(time.RFC3339, text); err == nil && field.name != "expires_in" {
			return t, nil
		}
		if t, err := time.ParseInLocation("2006-01-02 15:04:05", text, now.Location()); err == nil && field.name == "expiresOn" {
			return t, nil
		}
		return time.Time{}, fmt.Errorf("it printed %s in a form that is not known: want seconds, or a time as 2026-11-16T10:00:00Z", field.name)
	}
	return time.Time{}, nil
}
