package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/provider"
	"parley/internal/kit/files"
)

const (
	maxLevelAge  = 24 * time.Hour
	maxLevelFile = 4 << 10 // bytes of a file
)

// LevelStore is a folder that remembers how many calls servers have handled at once, so that the next
// run need not find it out again. It says only where a run begins: package limiter adapts from there. A
// nil LevelStore remembers nothing.
//
// There is one small file for each account at a server. It holds nothing of the key: its name is
// a hash of the server and of 16 bits of a hash of the key, which is enough to tell the keys of one
// user apart and too little to check a guess. A file that is missing, damaged or older than a day is
// ignored, and one that cannot be written changes nothing. Processes may write at once: the last one
// wins.
type LevelStore struct {
	folder string
	env    func(name string) (string, bool)
	now    func() time.Time
}

// NewLevels returns the store in a folder, which need not exist. env looks up the variables of keys.
func NewLevels(folder string, env func(name string) (string, bool)) *LevelStore {
	return &LevelStore{folder: folder, env: env, now: time.Now}
}

// levelFile is the content of a file.
type levelFile struct {
	InFlight int       `json:"in_flight"`
	Limited  bool      `json:"limited"`
	At       time.Time `json:"at"`
}

// Load returns what is known about the server of p at address, for the models of a pattern.
func (s *LevelStore) Load(p provider.Provider, address, pattern string) limiter.Level {
	if s == nil || p.InProcess() {
		return limiter.Level{}
	}
	b, err := files.Read(context.Background(), s.path(p, address, pattern), maxLevelFile)
	if err != nil {
		return limiter.Level{}
	}
	var e levelFile
	if json.Unmarshal(b, &e) != nil || e.InFlight < 1 || e.InFlight > limiter.MaxConcurrency {
		return limiter.Level{}
	}
	if age := s.now().Sub(e.At); age < -time.Minute || age > maxLevelAge {
		return limiter.Level{}
	}
	return limiter.Level{InFlight: e.InFlight, Limited: e.Limited}
}

// Save stores what a run found out. A run that needed fewer calls than are known to work has found
// out nothing.
func (s *LevelStore) Save(p provider.Provider, address, pattern string, l limiter.Level) error {
	if s == nil || p.InProcess() || l.InFlight < 1 {
		return nil
	}
	was := s.Load(p, address, pattern)
	if !l.Limited && l.InFlight <= max(limiter.FirstConcurrency, was.InFlight) {
		return nil
	}
	b, err := json.Marshal(levelFile{InFlight: min(l.InFlight, limiter.MaxConcurrency), Limited: l.Limited, At: s.now().UTC()})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	return files.Replace(s.path(p, address, pattern), 0o600, b)
}

// path returns the file of an account.
func (s *LevelStore) path(p provider.Provider, address, pattern string) string {
	key := ""
	if p.KeyEnv != "" {
		key, _ = s.env(p.KeyEnv)
	}
	if len(p.KeyCommand) > 0 { // what it prints changes
		key = provider.CommandLine(p.KeyCommand)
	}
	if p.Credentials != "" { // tokens change too
		key = string(p.Credentials)
	}
	hash := sha256.Sum256([]byte("parley limits\x00" + strings.TrimSpace(key)))
	text, err := json.Marshal([]string{p.Dialect, strings.TrimRight(address, "/"), pattern, hex.EncodeToString(hash[:2])})
	if err != nil {
		text = nil // strings always encode
	}
	name := sha256.Sum256(text)
	return filepath.Join(s.folder, hex.EncodeToString(name[:16])+".json")
}
