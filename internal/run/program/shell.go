package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/internal/kit/process"
)

// The texts of the program shell. Stand-ins of kinds recognize them.
const (
	shellRules = "You work in a folder by shell commands. Answer with one block of commands, between a line ```sh and a line ```. They are run, and you are told their exit code and their output. " +
		"When nothing is left to do, answer with a text without such a block: it is your answer."
	shellTurns = 50
	shellKeep  = 16 << 10
)

// shell is the program shell: it asks the model, and runs the commands that the model writes, until it writes none.
func (s *start) shell(ctx context.Context, c process.Command, env map[string]string, values placeholders) (res process.Result, err error) {
	begun, log := time.Now(), &strings.Builder{}
	over := func() bool { return c.Timeout > 0 && time.Since(begun) >= c.Timeout }
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	talk := []message{{"system", shellRules}, {"user", values["prompt"]}}
	defer func() {
		res.Took, res.Stderr = time.Since(begun), clean(log.String())
		res.TimedOut = over() && res.Exit != 0
	}()
	within := ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	for range shellTurns {
		text, err := complete(within, values, talk)
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		if err != nil {
			fmt.Fprintln(log, err)
			res.Exit = 1
			return res, nil //nolint:nilerr // a program that fails has an exit code
		}
		commands, ok := block(text)
		if !ok {
			res.Stdout = clean(text)
			return res, nil
		}
		one := c
		one.Keep = shellKeep
		if c.Timeout > 0 {
			one.Timeout = max(time.Millisecond, c.Timeout-time.Since(begun))
		}
		did, err := s.exec(ctx, one, []string{"sh", "-c", commands}, env, mounts{s.folder(): "", s.home(): ""})
		if err != nil {
			return res, err
		}
		fmt.Fprintf(log, "$ %s\n%s%s", commands, did.Stdout, did.Stderr)
		if over() {
			res.Exit = -1
			return res, nil
		}
		talk = append(talk, message{"assistant", text}, message{"user", fmt.Sprintf("exit code %d\n%s%s", did.Exit, did.Stdout, did.Stderr)})
	}
	fmt.Fprintf(log, "no end after %d turns\n", shellTurns)
	res.Exit = 1
	return res, nil
}

// block returns the commands of an answer.
func block(text string) (commands string, ok bool) {
	for _, fence := range []string{"```sh\n", "```bash\n", "```shell\n"} {
		if _, rest, found := strings.Cut(text, fence); found {
			commands, _, _ = strings.Cut(rest, "\n```")
			return strings.TrimSpace(commands), true
		}
	}
	return "", false
}

// maxCompletion bounds what is read of an answer.
const maxCompletion = 8 << 20

// complete asks the model of the session.
func complete(ctx context.Context, values placeholders, talk any) (string, error) {
	body, err := json.Marshal(map[string]any{"model": values["model"], "messages": talk})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, values["url"]+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+values["key"])
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // nothing stays open, and no proxy is between
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("the model cannot be asked: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxCompletion))
	if err != nil {
		return "", fmt.Errorf("the model cannot be asked: %w", err)
	}
	var answer struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(b, &answer) != nil || len(answer.Choices) == 0 {
		return "", fmt.Errorf("the model answered with status %d: %.300s", resp.StatusCode, b)
	}
	return answer.Choices[0].Message.Content, nil
}
