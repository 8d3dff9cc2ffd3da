package slackui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/playground/slack"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
)

// openings are a Slack that opens and changes modals.
type openings struct {
	webAPI
	shown  []string // what was sent, as open or update and its JSON
	update error
}

func (w *openings) show(how string, v slackgo.ModalViewRequest) {
	b, err := json.Marshal(v.Blocks)
	if err != nil {
		panic(err)
	}
	w.shown = append(w.shown, how+" "+string(b))
}

func (w *openings) OpenViewContext(_ context.Context, _ string, v slackgo.ModalViewRequest) (*slackgo.ViewResponse, error) {
	w.show("open", v)
	return &slackgo.ViewResponse{View: slackgo.View{ID: "V1", Hash: "h1"}}, nil
}

func (w *openings) UpdateViewContext(_ context.Context, v slackgo.ModalViewRequest, _, hash, id string) (*slackgo.ViewResponse, error) {
	if w.show("update", v); id != "V1" || hash != "h1" {
		return nil, fmt.Errorf("%s at %s is not the window", id, hash)
	}
	return &slackgo.ViewResponse{}, w.update
}

// noCopies are books whose copies of conversations cannot be read.
type noCopies struct{ chat.Store }

func (noCopies) Transcripts(context.Context, string) ([]transcripts.Transcript, error) {
	return nil, errors.New("the database is away")
}

// windowClick is a click in a modal.
func (m *matrix) windowClick(user, action string, page view.StepsPage) envelope {
	return m.envelope("interactive", object{
		"type": "block_actions", "team": object{"id": slack.TeamID}, "user": object{"id": user, "team_id": slack.TeamID},
		"container": object{"type": "view", "view_id": "V1"}, "view": object{"id": "V1", "hash": "h1", "type": "modal", "callback_id": view.CallbackSteps},
		"actions": []any{object{"type": "button", "action_id": action, "value": page.String(), "block_id": "b"}},
	})
}

// TestSteps: what tools gave back is shown to who may see the turn, where it was, and to
// nobody who is not in a private channel any more.
func TestSteps(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	api := &openings{webAPI: m.app.screen.api}
	m.app.screen.api = api
	m.app.screen.c.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "•••") }
	ctx := t.Context()
	turns := map[string]int64{}
	for _, p := range places {
		_, a, turn, _, _ := m.asked(p.id)
		turns[p.id] = turn
		th, err := m.db.ThreadOfTurn(ctx, turn)
		if err != nil {
			t.Fatal(err)
		}
		text := `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"seen in ` + p.id + ` by hunter2 <!channel>"}]}}` + "\n"
		sum := sha256.Sum256([]byte("seen in " + p.id + " by hunter2 <!channel>"))
		saved, err := m.db.SaveTranscripts(ctx, threads.Lease{ThreadID: th.ID, Owner: "replica-1", Epoch: th.LeaseEpoch}, []transcripts.Part{{
			SessionID: a.SessionID, Pieces: [][]byte{[]byte(text)}, Bytes: int64(len(text)), SHA256: sha256.Sum256([]byte(text)),
		}})
		if err != nil || !saved {
			t.Fatal(saved, err)
		}
		if err := m.db.Audit(ctx, audit.Entry{Kind: audit.ToolResult, ThreadID: th.ID, TurnID: turn, Details: map[string]any{"tool_use": "toolu_1", "error": false, "sha256": hex.EncodeToString(sum[:])}}); err != nil {
			t.Fatal(err)
		}
	}
	act := func(e envelope) (outcome, shown string) {
		api.shown = nil
		outcome = m.act(e)
		return outcome, strings.Join(api.shown, "\n")
	}
	at := func(place string) view.StepsPage { return view.StepsPage{Turn: turns[place], First: -1} }
	for _, p := range places {
		for _, who := range entitled {
			what := who.who + " in " + p.kind
			sees := strings.Contains(who.acts, "see") && !p.shared
			outcome, shown := act(m.click(who.user, p.id, "", view.ActionSteps, at(p.id).String()))
			if sees != (outcome == "viewed") || sees != (strings.Count(shown, "seen in "+p.id+" by •••") == 2) || sees != strings.Contains(shown, "Reading the results") || strings.Contains(shown, "another result") {
				t.Errorf("%s: %s, %s", what, outcome, shown)
			}
			reads := p.id == slack.ChannelEngineering || p.id == slack.ChannelPrivate && (who.user == slack.UserAda || who.user == slack.UserGrace) || p.id == "D0ANY" && who.user == "U0ASKED"
			page := at(p.id)
			page.First, page.Step = 0, 2
			outcome, shown = act(m.windowClick(who.user, view.ActionStep, page))
			if (sees && reads) != (outcome == "viewed") || (sees && reads) != strings.Contains(shown, "seen in "+p.id) || strings.Contains(shown, "open ") {
				t.Errorf("%s, in the window: %s, %s", what, outcome, shown)
			}
			if m.refusals(); outcome != "viewed" && outcome != "refused" {
				t.Errorf("%s: %s", what, outcome)
			}
		}
	}

	if outcome, shown := act(m.click(slack.UserAda, slack.ChannelEngineering, "", view.ActionSteps, at(slack.ChannelPrivate).String())); outcome != "refused" || shown != "" {
		t.Errorf("from another channel: %s, %s", outcome, shown)
	}
	if outcome, shown := act(m.click(slack.UserAda, slack.ChannelEngineering, "", view.ActionSteps, view.StepsPage{Turn: 1 << 40}.String())); outcome != "refused" || shown != "" {
		t.Errorf("of no turn: %s, %s", outcome, shown)
	}
	here := m.click(slack.UserAda, slack.ChannelEngineering, "", view.ActionSteps, at(slack.ChannelEngineering).String())
	api.update = slackgo.SlackErrorResponse{Err: "hash_conflict"} // they have clicked on meanwhile
	if outcome, _ := act(here); outcome != "viewed" {
		t.Errorf("of another state: %s", outcome)
	}
	api.update = nil
	db := m.app.screen.c.Store
	m.app.screen.c.Store = noCopies{db}
	if outcome, shown := act(here); outcome != "viewed" || !strings.Contains(shown, "read the results now") {
		t.Errorf("without the copies: %s, %s", outcome, shown)
	}
	m.app.screen.c.Store = db
	if _, err := m.conn.Exec(ctx, `UPDATE threads SET lease_owner = NULL, active_at = now() - interval '1 year'`); err != nil {
		t.Fatal(err)
	}
	if n, err := m.db.ForgetTranscripts(ctx, time.Now().Add(-time.Hour)); err != nil || n != len(places) {
		t.Fatal(n, err)
	}
	if outcome, shown := act(here); outcome != "viewed" || strings.Contains(shown, "seen in") || !strings.Contains(shown, "of this conversation is saved yet") {
		t.Errorf("after the copies were deleted: %s, %s", outcome, shown)
	}
}

// TestTurnDiff: the diff of a turn's commits is shown to whoever may see the turn.
func TestTurnDiff(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	api := &openings{webAPI: m.app.screen.api}
	m.app.screen.api = api
	m.app.screen.c.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "•••") }
	_, _, turn, _, _ := m.asked(slack.ChannelEngineering)
	click := func(user, channel string) (outcome, shown string) {
		api.shown = nil
		outcome = m.act(m.click(user, channel, "", view.ActionDiff, view.DiffPage{Turn: turn}.String()))
		return outcome, strings.Join(api.shown, "\n")
	}
	if outcome, shown := click(slack.UserAda, slack.ChannelEngineering); outcome != "no diff" || shown != "" {
		t.Errorf("before it is there: %s, %s", outcome, shown)
	}
	if err := m.db.SaveDiff(t.Context(), turn, &forges.Push{Unknown: "It could not be looked at: git ended."}); err != nil {
		t.Fatal(err)
	}
	if outcome, shown := click(slack.UserAda, slack.ChannelEngineering); outcome != "viewed" || !strings.Contains(shown, "The diff could not be read") || !strings.Contains(shown, "git ended") || strings.Contains(shown, "0 files") {
		t.Errorf("one that could not be read: %s, %s", outcome, shown)
	}
	long := strings.Repeat("+line of b\n", 20_000)
	if err := m.db.SaveDiff(t.Context(), turn, &forges.Push{Refs: []forges.PushRef{{
		Name: "refs/heads/deckhand/1", New: strings.Repeat("a", 40), Added: 20_001, Removed: 1,
		Commits: forges.PushCommits{Count: 1, Some: []forges.PushCommit{{ID: strings.Repeat("a", 40), Author: "Ada", Subject: "fix"}}},
		Files:   []forges.PushFile{{Path: "Makefile", Orders: true, Status: "M", Added: 1, Removed: 1}, {Path: "b `x`", Status: "A", Added: 20_000}},
		Diff:    "diff --git a/Makefile b/Makefile\n-hunter2\n+diff --git of old\ndiff --git a/b b/b\n" + long,
	}}}); err != nil {
		t.Fatal(err)
	}
	outcome, shown := click(slack.UserAda, slack.ChannelEngineering)
	for _, want := range []string{"2 files, +20,001 −1", "Page 1 of", "The diff", "Makefile (+1 −1), gives orders to others", "-•••", "Next page"} {
		if outcome != "viewed" || !strings.Contains(shown, want) {
			t.Errorf("%s, without %q:\n%.3000s", outcome, want, shown)
		}
	}
	next := m.envelope("interactive", object{
		"type": "block_actions", "team": object{"id": slack.TeamID}, "user": object{"id": slack.UserAda, "team_id": slack.TeamID},
		"container": object{"type": "view", "view_id": "V1"}, "view": object{"id": "V1", "hash": "h1", "type": "modal", "callback_id": view.CallbackDiff},
		"actions": []any{object{"type": "button", "action_id": view.ActionDiffPage, "value": view.DiffPage{Turn: turn, Page: 1}.String(), "block_id": "b"}},
	})
	api.shown = nil
	if outcome := m.act(next); outcome != "viewed" || !strings.Contains(strings.Join(api.shown, ""), "Previous page") {
		t.Errorf("the next page: %s, %.2000s", outcome, api.shown)
	}
	if outcome, shown := click(slack.UserAda, slack.ChannelPrivate); outcome != "refused" || shown != "" {
		t.Errorf("from another channel: %s, %s", outcome, shown)
	}
	if _, err := m.conn.Exec(t.Context(), `UPDATE threads SET lease_owner = NULL, active_at = now() - interval '1 year'`); err != nil {
		t.Fatal(err)
	}
	if n, err := m.db.ForgetTranscripts(t.Context(), time.Now().Add(-time.Hour)); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if outcome, _ := click(slack.UserAda, slack.ChannelEngineering); outcome != "no diff" {
		t.Errorf("of a thread whose copies are deleted: %s", outcome)
	}
}
