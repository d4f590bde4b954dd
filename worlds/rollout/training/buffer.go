package training

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// This file serves the API of a rollout buffer that some trainers use: POST /start_rollout and POST
// /get_rollout_data. Its clients send no cursor, so the server keeps one.

// startRollout starts the run. It ignores what a client says about models and files: those are in the plan.
func (s *Server) startRollout(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Group   any `json:"num_repeat_per_sample"`
		Restart any `json:"restart_training"`
	}
	if b, err := io.ReadAll(r.Body); err == nil && len(b) > 0 {
		if err := json.Unmarshal(b, &body); err != nil {
			unsuccessful(w, http.StatusBadRequest, "the body is no JSON object: "+short(err.Error()))
			return
		}
	}
	group, err := positiveNumber(body.Group, s.cfg.Group)
	if err != nil {
		unsuccessful(w, http.StatusBadRequest, err.Error())
		return
	}
	if isTrue(body.Restart) {
		if err := s.skip(r); err != nil {
			unsuccessful(w, http.StatusInternalServerError, err.Error())
			return
		}
	}
	o := Override{Params: map[string]json.RawMessage{"group": json.RawMessage(strconv.Itoa(group))}}
	switch again, err := s.player.start(r.Context(), o); {
	case err != nil:
		unsuccessful(w, refusal(err), err.Error())
	case again:
		answer(w, http.StatusOK, map[string]any{"success": true, "message": "Rollout is already running"})
	default:
		answer(w, http.StatusOK, map[string]any{"success": true, "message": "Rollout started"})
	}
}

// positiveNumber returns the size of groups, which clients write as a number or a string.
func positiveNumber(v any, otherwise int) (int, error) {
	if v == nil {
		return otherwise, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(fmt.Sprint(v)))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("num_repeat_per_sample: %.40q: want a number above 0", fmt.Sprint(v))
	}
	return n, nil
}

func isTrue(v any) bool {
	return v != nil && slices.Contains([]string{"true", "1", "yes"}, strings.ToLower(fmt.Sprint(v)))
}

// skip moves the position after everything that is complete: training starts over.
func (s *Server) skip(r *http.Request) error {
	at := <-s.buffer
	defer func() { s.buffer <- at }()
	_, _, last, err := s.source.count(r.Context())
	if err != nil {
		return err
	}
	return at.save(last)
}

func unsuccessful(w http.ResponseWriter, code int, why string) {
	answer(w, code, map[string]any{"success": false, "message": why})
}

// bufferItem is a row in the format of a rollout buffer.
type bufferItem struct {
	UID        string          `json:"uid"`
	InstanceID string          `json:"instance_id"`
	Messages   json.RawMessage `json:"messages"` // the prompt and the answer
	Reward     float64         `json:"reward"`   // total reward of the agent
	ExtraInfo  extraInfo       `json:"extra_info"`
	// As in a row: of the whole conversation, if the server returned token ids.
	Tokens   []int     `json:"tokens,omitempty"`
	LossMask []int     `json:"loss_mask,omitempty"`
	Logprobs []float64 `json:"logprobs,omitempty"`
}

type extraInfo struct {
	Timestamp     float64 `json:"timestamp"`
	Steps         int     `json:"steps"`
	FinishReason  string  `json:"finish_reason"` // length or stop
	SessionID     string  `json:"session_id"`
	EnvID         string  `json:"env_id"`
	GroupID       string  `json:"group_id"`
	WeightVersion int     `json:"weight_version"` // 0 where the server did not say
	Truncated     bool    `json:"truncated"`
	Completed     bool    `json:"is_session_completed"`
	StepReward    float64 `json:"step_reward"`
	AgentID       string  `json:"agent_id"`
	PolicyID      string  `json:"policy_id"`
	Advantage     float64 `json:"advantage"` // as in a row
}

func bufferItemOf(r *Row) *bufferItem {
	version, err := strconv.Atoi(r.WeightVersion)
	if err != nil {
		version = 0 // a name, or none
	}
	x := extraInfo{
		Timestamp: float64(r.At.UnixMicro()) / 1e6, Steps: r.StepID, FinishReason: "stop", SessionID: r.SessionID, EnvID: r.SessionID,
		GroupID: r.GroupID, WeightVersion: version, Truncated: r.IsTruncated, Completed: r.IsSessionCompleted, StepReward: r.StepReward,
		AgentID: r.AgentID, PolicyID: r.PolicyID,
	}
	if r.IsTruncated {
		x.FinishReason = "length"
	}
	if r.Advantage != nil {
		x.Advantage = *r.Advantage
	}
	return &bufferItem{
		UID: fmt.Sprintf("%s-%d-%s", r.SessionID, r.StepID, r.AgentID), InstanceID: peers(r.GroupID, r.AgentID),
		Messages: r.Messages, Reward: r.Return, ExtraInfo: x, Tokens: r.Tokens, LossMask: r.LossMask, Logprobs: r.Logprobs,
	}
}

// metaInfo describes the items of an answer.
type metaInfo struct {
	Samples    int      `json:"total_samples"`
	AvgReward  float64  `json:"avg_reward"`
	Finished   []string `json:"finished_groups"`
	AvgVersion float64  `json:"avg_weight_version"`
	MaxVersion int      `json:"max_weight_version"`
	// Left counts dropped groups by reason, and Cursor is where this answer ends. A client that sends it does
	// not depend on the server's position.
	Left   map[string]int `json:"left_groups,omitempty"`
	Cursor string         `json:"cursor"`

	groups int
}

func (m *metaInfo) add(i *bufferItem) {
	m.Samples++
	n := float64(m.Samples)
	m.AvgReward += (i.Reward - m.AvgReward) / n
	m.AvgVersion += (float64(i.ExtraInfo.WeightVersion) - m.AvgVersion) / n
	m.MaxVersion = max(m.MaxVersion, i.ExtraInfo.WeightVersion)
}

// rolloutData answers with whole trainable groups, from the client's position. The position moves only once
// the answer is written.
func (s *Server) rolloutData(w http.ResponseWriter, r *http.Request) {
	var body struct {
		MaxGroups any    `json:"max_groups"`
		Cursor    string `json:"cursor"`
	}
	if b, err := io.ReadAll(r.Body); err == nil && len(b) > 0 {
		_ = json.Unmarshal(b, &body) // the body may be anything
	}
	limit, err := positiveNumber(body.MaxGroups, 64)
	if err != nil {
		limit = 64
	}
	var at *position
	select {
	case at = <-s.buffer:
		defer func() { s.buffer <- at }()
	case <-r.Context().Done():
		return
	}
	in := reading{source: s.source, filter: Filter{Trainable: true, Whole: true, Statuses: []Status{completed, truncated}}}
	s.limitStaleness(&in.filter)
	if in.cursor, err = s.startCursor(r, body.Cursor, at); err != nil {
		unsuccessful(w, http.StatusConflict, err.Error())
		return
	}
	s.source.reached(in.cursor)
	g, err := in.next(r.Context())
	switch {
	case err != nil:
		unsuccessful(w, http.StatusInternalServerError, err.Error())
		return
	case g == nil:
		m := metaInfo{Finished: []string{}, Left: in.left, Cursor: s.source.formatCursor(in.cursor)}
		answer(w, http.StatusOK, map[string]any{"success": false, "message": "No data available to read", "data": map[string]any{"data": []bufferItem{}, "meta_info": m}})
	default:
		err = s.writeItems(w, r, &in, g, limit)
	}
	if err == nil && body.Cursor == "" {
		err = at.save(s.source.formatCursor(in.cursor))
	}
	if err != nil {
		abortAnswer()
	}
}

// startCursor returns the start of an answer: the client's cursor, or the saved position.
func (s *Server) startCursor(r *http.Request, given string, at *position) (int, error) {
	if given != "" {
		return s.source.parseCursor(r.Context(), given)
	}
	n, err := s.source.parseCursor(r.Context(), at.cursor())
	if errors.Is(err, errForeign) {
		return 0, nil // of another run
	}
	return n, err
}

// writeItems writes an answer with the groups from g on, in one piece with its length. The position moves after its
// last byte. A server that is killed in between sends the same items again, under the same names, rather than
// never.
func (s *Server) writeItems(w http.ResponseWriter, r *http.Request, in *reading, g *Group, limit int) (err error) {
	var out bytes.Buffer
	var m metaInfo
	out.WriteString(`{"data":{"data":[`)
	for g != nil {
		if err := m.group(&out, g); err != nil {
			return err
		}
		if m.groups == limit || out.Len() >= maxBytes {
			break
		}
		if g, err = in.next(r.Context()); err != nil {
			return err
		}
	}
	m.Left, m.Cursor = in.left, s.source.formatCursor(in.cursor)
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	fmt.Fprintf(&out, `],"meta_info":%s},"success":true,"message":"Successfully read %d items"}`, b, m.Samples)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	to := s.newDeadlineWriter(w)
	for piece := range slices.Chunk(out.Bytes(), 64<<10) {
		if _, err := to.Write(piece); err != nil {
			return err
		}
	}
	return to.flush()
}

// group writes the items of a group.
func (m *metaInfo) group(out *bytes.Buffer, g *Group) error {
	var finished []string
	for _, t := range g.Members {
		for i := range t.Rows {
			it := bufferItemOf(&t.Rows[i])
			b, err := json.Marshal(it)
			if err != nil {
				return err
			}
			if m.Samples > 0 {
				out.WriteByte(',')
			}
			out.Write(b)
			m.add(it)
			if !slices.Contains(finished, it.InstanceID) {
				finished = append(finished, it.InstanceID)
			}
		}
	}
	m.groups++
	m.Finished = append(m.Finished, finished...)
	return nil
}
