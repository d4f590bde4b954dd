package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/internal/cli/exit"
	"parley/internal/run/runfile"
)

const duelEpisodes = 8

// readings returns the output and the exit code of each command that reads the run file.
func readings(t *testing.T, file string) (printed map[string]string, codes map[string]int, errs string) {
	t.Helper()
	printed, codes = map[string]string{}, map[string]int{}
	verbs := [][]string{{"report", file, "--json"}, {"compare", file, "--by", "agent", "--json"}, {"show", file, "--json"}}
	for _, table := range []string{"calls", "episodes", "messages", "scores"} {
		verbs = append(verbs, []string{"export", file, "--table", table})
	}
	for n := range duelEpisodes {
		verbs = append(verbs, []string{"show", file, "--episode", fmt.Sprint(n), "--json"})
	}
	for _, verb := range verbs {
		got := parley(t, State{}, verb...)
		name := strings.Join(append(verb[:1:1], verb[2:]...), " ")
		printed[name], codes[name] = got.stdout, got.code
		errs += got.stderr
	}
	return printed, codes, errs
}

// wantOut fails the test unless standard output holds all of texts.
func (o outcome) wantOut(t *testing.T, texts ...string) outcome {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.stdout, text) {
			t.Fatalf("stdout does not say %q:\n%s", text, o.stdout)
		}
	}
	return o
}

func alter(t *testing.T, file, text string) {
	t.Helper()
	c, err := sqlite.OpenConn(file, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := sqlitex.ExecuteScript(c, text, nil); err != nil {
		t.Fatal(err)
	}
}

func bytesOf(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDamagedRun checks that the commands that read name the damaged episode, read the others, and report it in
// their exit code. Commands that play refuse the file.
func TestDamagedRun(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := duel(t, "run.parley", "plan.matrix.repeat=4", "seed=7")
	parley(t, State{}, "check", file).want(t, exit.OK).wantOut(t, "is whole")
	alter(t, file, `UPDATE texts SET text = text || '.' WHERE id = (SELECT answer FROM replies WHERE episode = 3 ORDER BY seq DESC LIMIT 1);
		UPDATE outcomes SET scores = replace(scores, '1', '2') WHERE episode = 3;`)

	parley(t, State{}, "check", file).want(t, exit.Failed).wantOut(t, "1 of 8 episodes cannot be read whole: 3.", "episode 3: ", "parley run refuses")
	var found struct {
		Whole    bool
		Episodes []int `json:"damaged_episodes"`
	}
	if err := json.Unmarshal([]byte(parley(t, State{}, "check", file, "--json").want(t, exit.Failed).stdout), &found); err != nil || found.Whole || !slices.Equal(found.Episodes, []int{3}) {
		t.Errorf("%+v, %v", found, err)
	}
	for _, verb := range [][]string{
		{"show", file}, {"report", file}, {"report", file, "--json"}, {"compare", file, "--by", "agent"}, {"show", file, "--failed"},
		{"export", file}, {"export", file, "--table", "messages"}, {"export", file, "--table", "episodes"}, {"export", file, "--table", "scores"},
		{"export", file, "--table", "all", "--out", filepath.Join(t.TempDir(), "tables")},
		{"report", file, "--html", filepath.Join(t.TempDir(), "page.html")},
	} {
		got := parley(t, State{}, verb...)
		if verb[0] == "show" && len(verb) == 3 {
			got.want(t, exit.OK) // it read nothing damaged
			continue
		}
		got.want(t, exit.Failed).wantErr(t, "is damaged and was read without episode 3; parley check")
		if verb[0] == "export" && len(verb) == 4 && verb[3] != "messages" && (strings.Contains(got.stdout, `"episode":3,`) || !strings.Contains(got.stdout, `"episode":4,`)) {
			t.Errorf("%v: the damaged episode should be left out, and only that:\n%s", verb, got.stdout)
		}
	}
	parley(t, State{}, "show", file, "--episode", "3").want(t, exit.Misuse).wantErr(t, "damaged", "episode 3", "parley check")
	parley(t, State{}, "show", file, "--episode", "4").want(t, exit.OK)
	parley(t, State{}, "run", file).want(t, exit.Misuse).wantErr(t, "damaged", "parley check")
	parley(t, State{}, "fork", file, "--episode", "3", "--turn", "1").want(t, exit.Misuse).wantErr(t, "damaged")
	parley(t, State{}, "check", filepath.Join(t.TempDir(), "none.parley")).want(t, exit.Misuse).wantErr(t, "no such run file")
	parley(t, State{}, "check", write(t, "no.parley", "dear diary")).want(t, exit.Misuse).wantErr(t, "not a run file")
	parley(t, State{}, "check", write(t, "half.parley", string(bytesOf(t, file)[:30000]))).want(t, exit.Failed).wantOut(t, "is damaged")
}

// TestOverwritten checks that a file with a page that SQLite cannot read is read without the episodes of that page, and that a file
// of which nothing can be read is refused with words that say so.
func TestOverwritten(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := duel(t, "run.parley", "plan.matrix.repeat=4", "seed=7")
	whole := bytesOf(t, file)
	overwritten := func(name string, page int) string {
		spoiled := slices.Clone(whole)
		copy(spoiled[page*runfile.PageSize:], bytes.Repeat([]byte{0xff}, runfile.PageSize))
		return write(t, name, string(spoiled))
	}
	part := overwritten("part.parley", 8) // of the table replies
	parley(t, State{}, "check", part).want(t, exit.Failed).wantOut(t, "of 8 episodes cannot be read whole: ", "read the others")
	for _, verb := range [][]string{{"show", part}, {"report", part}, {"export", part, "--out", filepath.Join(t.TempDir(), "calls.csv")}} {
		parley(t, State{}, verb...).want(t, exit.Failed).wantErr(t, "is damaged and was read without episode")
	}
	parley(t, State{}, "report", part).wantOut(t, "The run file is damaged.", "of 8 episodes cannot be read whole and are left out: ")
	parley(t, State{}, "export", part).want(t, exit.Failed).wantErr(t, "is damaged and was read without episode", "with --out there are none")

	all := overwritten("all.parley", 3) // where the run begins
	parley(t, State{}, "check", all).want(t, exit.Failed).wantOut(t, "Nothing of the file can be read")
	for _, verb := range []string{"show", "report", "export"} {
		parley(t, State{}, verb, all).want(t, exit.Misuse).wantErr(t, "nothing of it can be read", "cannot read the rest of it either")
	}
}

// TestFlippedBits flips bits of a run file: every command must print what it printed before, or say that the
// file is damaged.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := duel(t, "run.parley", "plan.matrix.repeat=4", "seed=7")
	whole := bytesOf(t, file)
	want, _, _ := readings(t, file)
	r := rand.New(rand.NewPCG(14, 12))
	const flips = 16
	quiet := 0
	for part := range flips { // of the file: one bit of each
		spoiled := slices.Clone(whole)
		size := 8 * len(spoiled) / flips
		bit := part*size + r.IntN(size)
		spoiled[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(file, spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		got, codes, errs := readings(t, file)
		for name, text := range got {
			if codes[name] == exit.OK && text != want[name] {
				t.Errorf("bit %d of byte %d: %s says something else:\n%s", bit%8, bit/8, name, text)
			}
			if codes[name] != exit.OK && !strings.Contains(errs, file) {
				t.Errorf("bit %d of byte %d: %s does not name the file: %s", bit%8, bit/8, name, errs)
			}
		}
		if maps.Equal(got, want) {
			quiet++
		}
	}
	if quiet == flips || quiet == 0 {
		t.Errorf("%d of %d flips made no difference", quiet, flips)
	}
}
