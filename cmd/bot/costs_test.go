package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/playground/page/pagetest"
	"deckhand/internal/playground/slack"
	"deckhand/internal/waittest"
)

// slash types a slash command that only asks, and returns what the person is shown.
// It asks again where nothing came in the three seconds that a person would wait.
func (w *world) slash(user, channel, text string) string {
	w.t.Helper()
	var out struct {
		Ephemerals []map[string]any `json:"ephemerals"`
	}
	w.eventually("an answer to /deckhand "+text, func() bool {
		w.must(http.MethodPost, "/_control/slash", map[string]any{"user": user, "channel": channel, "text": text, "expect": "ephemeral"}, &out)
		return len(out.Ephemerals) > 0
	})
	return flatten(any(anys(out.Ephemerals)))
}

// spent has two people spend a little, and returns the thread of one of them.
func (w *world) spent() (thread string) {
	w.t.Helper()
	thread = w.post(linus, eng, "", "@deckhand say: hello Linus")
	w.done(eng, thread, thread)
	again := w.post(linus, eng, thread, "say: hello again")
	w.done(eng, thread, again)
	other := w.post(grace, eng, "", "@deckhand say: hello Grace")
	w.done(eng, other, other)
	return thread
}

// costsInAThread: who asks what, and what they and the others are shown.
func costsInAThread(t *testing.T, w *world, thread string) {
	// Plain totals are for all to see.
	w.post(linus, eng, thread, "@deckhand costs")
	answer := w.find(eng, thread, "the costs", func(m message) bool {
		return m.User == w.BotUser && m.EphemeralTo == "" && strings.Contains(m.all(), "the whole team")
	})
	for _, want := range []string{"This thread", "since it began", "Per turn", "3 turns", `"type":"table"`} {
		if !strings.Contains(answer.all(), want) {
			t.Errorf("the costs do not say %q: %s", want, answer.all())
		}
	}

	// People are named to admins, and to them alone.
	w.post(ada, eng, thread, "@deckhand costs today by user")
	byUser := w.find(eng, thread, "the costs by user", func(m message) bool {
		return m.EphemeralTo == ada && strings.Contains(m.all(), "Linus Engineer") && strings.Contains(m.all(), "Grace Approver")
	})
	if !strings.Contains(byUser.all(), `"type":"data_visualization"`) {
		t.Errorf("there is no chart: %s", byUser.all())
	}
	w.post(linus, eng, thread, "@deckhand costs today by user")
	w.told(linus, eng, thread, "for admins to see")
	w.post(linus, eng, thread, "@deckhand costs today for <@"+grace+">")
	w.told(linus, eng, thread, "What other people spent is for admins")
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'refused' AND actor = '` + linus + `' AND details::jsonb->>'act' = 'costs'`); n != 2 {
		t.Errorf("%d refusals in the audit", n)
	}

	// One's own always.
	w.post(linus, eng, thread, "@deckhand costs this week for me")
	w.find(eng, thread, "Linus's own costs", func(m message) bool {
		return m.EphemeralTo == linus && strings.Contains(m.all(), ", Linus Engineer") && !strings.Contains(m.all(), "Grace Approver")
	})

	// What is not understood costs nothing, and is told to who wrote it.
	turns := w.count(`SELECT count(*) FROM turns`)
	w.post(linus, eng, thread, "@deckhand costs last fortnihgt by user")
	w.told(linus, eng, thread, "I don't know")
	w.post(linus, eng, thread, "@deckhand costs for project nowhere")
	w.told(linus, eng, thread, "There is no project “nowhere”")
	if n := w.count(`SELECT count(*) FROM turns`); n != turns {
		t.Error("the agent was given a question about costs")
	}
	for _, m := range w.messages(eng, thread) {
		if m.EphemeralTo == "" && strings.Contains(m.all(), "Grace Approver") && m.User == w.BotUser {
			t.Errorf("a person is named in public: %s", m.all())
		}
	}
}

// askedBack: what is nearly a command or a question about costs comes back with buttons, and
// is billed only where somebody presses Ask Claude instead.
func askedBack(t *testing.T, w *world, thread string) {
	turns := w.count(`SELECT count(*) FROM turns`)
	unbilled := func(what string) {
		t.Helper()
		if n := w.count(`SELECT count(*) FROM turns`); n != turns {
			t.Fatalf("%s: there are %d turns, and there were %d", what, n, turns)
		}
	}
	back := func(user, says string) message {
		t.Helper()
		return w.find(eng, thread, says, func(m message) bool {
			return m.EphemeralTo == user && strings.Contains(m.all(), says) && strings.Contains(m.all(), "Ask Claude instead")
		})
	}
	answer := func(user, what string, holds ...string) {
		t.Helper()
		w.find(eng, thread, what, func(m message) bool {
			for _, h := range holds {
				if !strings.Contains(m.all(), h) {
					return false
				}
			}
			return m.EphemeralTo == user && m.User == w.BotUser
		})
	}

	// Answered from the ledger, by a plain reply too.
	w.post(linus, eng, thread, "how much did I spend today?")
	answer(linus, "what Linus spent today", "Costs of", ", Linus Engineer")
	w.post(ada, eng, thread, "@deckhand who spent the most this week?")
	answer(ada, "who spent the most", "Linus Engineer", "Grace Approver")
	unbilled("questions about costs")

	// A misspelt command, and the button for the one that was meant.
	w.post(linus, eng, thread, "csots this quarter for me")
	w.click(linus, eng, back(linus, "Did you mean “costs this quarter for me”?").TS, "say:0")
	answer(linus, "the costs that were meant", "Costs of", "Q4", ", Linus Engineer")
	unbilled("a misspelt command")

	// Who may see what is decided when the button is pressed.
	w.post(linus, eng, thread, "@deckhand costs by usr last quarter")
	w.click(linus, eng, back(linus, "I don't know “by usr”").TS, "say:0")
	w.told(linus, eng, thread, "for admins to see")
	unbilled("a refusal")

	// Where nothing runs nothing stops, and nothing is billed.
	w.post(linus, eng, thread, "@deckhand ✋")
	back(linus, "Nothing is running in this thread.")
	unbilled("a word that means stop")

	// Asked all the same it is work, once, with what the person wrote.
	prompt := w.post(linus, eng, thread, "hlep")
	asked := back(linus, "Did you mean “help”?")
	unbilled("a misspelt command")
	w.click(linus, eng, asked.TS, "ask_claude")
	w.done(eng, thread, prompt)
	if got := w.text(`SELECT prompt FROM inbox WHERE ts = '` + prompt + `' AND kind = 'message'`); !strings.Contains(got, "hlep") {
		t.Errorf("the model got %q", got)
	}
	w.click(linus, eng, asked.TS, "ask_claude")
	w.told(linus, eng, thread, "Claude has this message already")
	turns++
	unbilled("a second press")
}

// stopInOtherWords: a running turn is stopped by what means stop.
func stopInOtherWords(t *testing.T, w *world, thread string) {
	for _, words := range []string{"please stop", "@deckhand arrête !", "🛑"} {
		prompt := w.post(linus, eng, thread, "tool: Bash {\"command\":\"echo x >> ran\"}\nsay: it ran")
		w.card(eng, thread)
		turns := w.count(`SELECT count(*) FROM turns`)
		w.post(linus, eng, thread, words)
		w.eventually("the turn ends", func() bool {
			return w.count(`SELECT count(*) FROM inbox WHERE ts = '`+prompt+`' AND state = 'done'`) == 1
		})
		if n := w.count(`SELECT count(*) FROM turns`); n != turns {
			t.Errorf("%q: %d turns, and there were %d", words, n, turns)
		}
	}
}

// costsAsAFile: the exact figures, where those who may see them find them.
func costsAsAFile(t *testing.T, w *world, thread string) {
	w.post(linus, eng, thread, "@deckhand costs today by project as csv")
	file := w.find(eng, thread, "the file", func(m message) bool { return len(m.Files) > 0 })
	if name := file.Files[0].Name; !strings.HasPrefix(name, "costs-") || !strings.HasSuffix(name, "-by-project.csv") {
		t.Errorf("the file is called %s", name)
	}
	text := w.download(eng, thread)
	total := w.count(`SELECT sum(micro_usd)::bigint FROM ledger`)
	if !strings.HasPrefix(text, "from,to,group,") || !strings.Contains(text, fmt.Sprintf(",%d,", total)) {
		t.Errorf("the file does not say %d: %s", total, text)
	}

	// By the slash command, and what is about people: in direct messages.
	if shown := w.slash(linus, eng, "costs this month for me with csv"); !strings.Contains(shown, ", Linus Engineer") {
		t.Errorf("the slash command shows %s", shown)
	}
	w.find("D0LINUS", "", "the file in Linus's direct messages", func(m message) bool { return len(m.Files) > 0 })
	w.post(ada, eng, thread, "@deckhand costs today by user with csv")
	w.find("D0ADA", "", "the file in Ada's direct messages", func(m message) bool { return len(m.Files) > 0 })
	if text := w.download("D0ADA", ""); !strings.Contains(text, "Linus Engineer") || !strings.Contains(text, "Grace Approver") {
		t.Errorf("Ada's file: %s", text)
	}
	public := 0
	for _, m := range w.messages(eng, thread) {
		public += len(m.Files)
	}
	if public != 1 {
		t.Errorf("%d files in the thread", public)
	}
}

// download returns the last file of a conversation, as the bot would get it.
func (w *world) download(channel, thread string) string {
	w.t.Helper()
	var out struct {
		Messages []struct {
			Files []struct {
				URL string `json:"url_private"`
			} `json:"files"`
		} `json:"messages"`
	}
	path := "/_control/messages?channel=" + channel
	if thread != "" {
		path += "&thread_ts=" + thread
	}
	w.must(http.MethodGet, path, nil, &out)
	address := ""
	for _, m := range out.Messages {
		for _, f := range m.Files {
			address = f.URL
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.BotToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // the body is read whole
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("download %s: %s, %v", address, resp.Status, err)
	}
	return string(b)
}

// costsWhereChartsAreRefused: the answer comes all the same, as text with a picture. From then
// on charts are refused.
func costsWhereChartsAreRefused(t *testing.T, w *world, _ string) {
	w.history(20)
	thread := ""
	w.must(http.MethodPost, "/_control/refuse", map[string]any{"block": "data_visualization", "place": "message"}, nil)
	for i := range 2 {
		asked := w.post(linus, eng, thread, "@deckhand costs last 20 days by day")
		if thread == "" {
			thread = asked
		}
		w.eventually("the picture", func() bool {
			pictures, answers := 0, 0
			for _, m := range w.messages(eng, thread) {
				if strings.Contains(m.all(), "a chart, which Slack does not show here") {
					answers++
				}
				for _, f := range m.Files {
					if strings.HasSuffix(f.Name, "-by-day.png") {
						pictures++
					}
				}
			}
			return pictures == i+1 && answers == i+1
		})
	}
	picture := w.download(eng, thread)
	if !strings.HasPrefix(picture, "\x89PNG") {
		t.Errorf("the picture is %.20q", picture)
	}
	if folder := os.Getenv("DECKHAND_SCREENSHOTS"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, "costs-picture.png"), []byte(picture), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// TestADigest: it is scheduled, comes once, and the next one is scheduled.
func TestADigest(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `time_zone: Europe/Berlin
reports:
  digests:
    - {every: day, at: "09:30", to: `+slack.ChannelGeneral+`, by: user, csv: true}
    - {every: month, to: `+ada+`}
    - {every: day, to: `+slack.ChannelShared+`}
`)
	w.history(3)
	w.eventually("the digests' jobs", func() bool {
		return w.count(`SELECT count(*) FROM river_job WHERE kind = 'digest' AND state = 'scheduled'`) == 3
	})
	if n := w.count(`SELECT count(*) FROM river_job WHERE kind = 'digest' AND args->>'digest' LIKE 'day 09:30 Europe/Berlin%'
		AND to_char(scheduled_at AT TIME ZONE 'Europe/Berlin', 'HH24:MI') = '09:30' AND scheduled_at BETWEEN now() AND now() + interval '25 hours'`); n != 1 {
		t.Errorf("%d jobs at half past nine", n)
	}
	// Their time has come.
	w.count(`WITH due AS (UPDATE river_job SET scheduled_at = now() WHERE kind = 'digest' RETURNING 1) SELECT count(*) FROM due`)
	digest := w.find(slack.ChannelGeneral, "", "the digest", func(m message) bool {
		return m.User == w.BotUser && strings.Contains(m.all(), "Costs of") && strings.Contains(m.all(), "Linus Engineer")
	})
	if !strings.Contains(digest.all(), "This comes every day at 09:30") || !strings.Contains(digest.all(), "digest:") {
		t.Errorf("the digest: %s", digest.all())
	}
	w.find(slack.ChannelGeneral, "", "its file", func(m message) bool { return len(m.Files) > 0 })
	w.find("D0ADA", "", "Ada's digest", func(m message) bool { return strings.Contains(m.all(), "on the first of every month") })
	w.eventually("the next jobs", func() bool {
		return w.count(`SELECT count(*) FROM river_job WHERE kind = 'digest' AND state = 'completed'`) == 3 &&
			w.count(`SELECT count(*) FROM river_job WHERE kind = 'digest' AND state = 'scheduled'`) == 3
	})
	for _, m := range w.messages(slack.ChannelShared, "") {
		if m.User == w.BotUser {
			t.Errorf("people of another company read %s", m.all())
		}
	}
	w.stop()
	w.start() // which schedules what is scheduled already
	if n := w.count(`SELECT count(*) FROM river_job WHERE kind = 'digest'`); n != 6 {
		t.Errorf("%d jobs after a restart", n)
	}
	said := 0
	for _, m := range w.messages(slack.ChannelGeneral, "") {
		if m.User == w.BotUser && strings.Contains(m.all(), "Costs of") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the digest came %d times", said)
	}
}

// daysOfTheAsker: the zone is the person's where the team wants that.
func daysOfTheAsker(t *testing.T, w *world, _ string) {
	if shown := w.slash(linus, eng, "costs today"); !strings.Contains(shown, "Days are those of Europe/Amsterdam") {
		t.Errorf("the answer: %s", shown)
	}
}

// homeCosts: everybody sees their own, admins the projects.
func homeCosts(_ *testing.T, w *world, _ string) {
	for user, want := range map[string]bool{linus: false, ada: true} {
		w.eventually("the home tab of "+user, func() bool {
			var out map[string]any
			w.must(http.MethodGet, "/_control/home?user="+user, nil, &out)
			text := flatten(out)
			return strings.Contains(text, "What you spent") && strings.Contains(text, "Last month") && strings.Contains(text, "Projects, this month") == want
		})
	}
}

// history books made-up turns of the last days, for pictures that show something.
func (w *world) history(days int) {
	w.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.DatabaseURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // a test's connection
	now := time.Now().UTC()
	exec := func(sql string, args ...any) {
		w.t.Helper()
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			w.t.Fatal(err)
		}
	}
	for n, p := range []struct {
		user, channel, project string
		weight                 int64
	}{
		{linus, eng, "sample", 31},
		{grace, eng, "sample", 22},
		{ada, slack.ChannelPrivate, "sample", 9},
		{mallory, slack.ChannelGeneral, "docs", 12},
		{"U0GONE", eng, "checkout", 17},
		{linus, slack.ChannelGeneral, "docs", 5},
		{grace, "D0GRACE", "checkout", 7},
	} {
		began := now.AddDate(0, 0, -days).Add(time.Duration(n) * time.Minute)
		var thread, turn int64
		session := uuid.NewString()
		err := conn.QueryRow(ctx, `INSERT INTO threads (team_id, channel_id, thread_ts, project, owner_id, created_at, active_at)
			VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING id`, slack.TeamID, p.channel, fmt.Sprintf("%d.000100", began.Unix()), p.project, p.user, began).Scan(&thread)
		if err != nil {
			w.t.Fatal(err)
		}
		exec(`INSERT INTO sessions (id, thread_id, started) VALUES ($1, $2, true)`, session, thread)
		exec(`INSERT INTO epochs (session_id, epoch, cli_version, baseline_micro_usd) VALUES ($1, 1, '2.1.329', 0)`, session)
		total := int64(0)
		for d := range days {
			at := now.AddDate(0, 0, d+1-days)
			if weekend := at.Weekday() == time.Saturday || at.Weekday() == time.Sunday; weekend && n > 0 {
				continue
			}
			for i, model := range []string{"claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"} {
				err := conn.QueryRow(ctx, `INSERT INTO turns (thread_id, session_id, epoch, lease_epoch, requested_by, state, agent_turns, started_at, ended_at)
					VALUES ($1, $2, 1, 1, $3, 'done', 3, $4, $4) RETURNING id`, thread, session, p.user, at).Scan(&turn)
				if err != nil {
					w.t.Fatal(err)
				}
				cost := p.weight * (40_000 + int64((d*7+n*13)%29)*6_000 + int64(d)*1_700) / int64(1+i*5)
				exec(`INSERT INTO ledger (at, booked_on, kind, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id, cli_version, model,
						input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, web_searches, micro_usd, total_before, total_after, turns, approved)
					VALUES ($1, $2, 'turn', $3, $4, $5, $6, $7, $8, 1, $9, '2.1.329', $10, $11, $12, $13, 0, 0, 0, $14, $15, $16, 1, $17)`,
					at, at.Format(time.DateOnly), slack.TeamID, p.channel, thread, p.project, p.user, session, turn, model,
					cost/900, cost/250, cost/2, cost, total, total+cost, (d+n)%3)
				total += cost
			}
		}
	}
}

// TestCostsInThePage: what people see, in a real browser, in light and dark. With
// DECKHAND_SCREENSHOTS set, its pictures go there.
func TestCostsInThePage(t *testing.T) {
	t.Parallel()
	chrome := pagetest.Start(t)
	w := newWorld(t)
	w.history(60)
	thread := w.spent()
	tab := chrome.Open(t, w.URL, "/#/c/"+eng+"/t/"+thread+"?user="+ada)
	tab.Do(chromedp.EmulateViewport(1360, 1180))
	ask := func(words, seen, picture string) {
		t.Helper()
		tab.Say(`[data-testid="thread-composer"]`, "@deckhand "+words)
		tab.SeeText(`[data-testid="thread"]`, seen)
		tab.See(`document.querySelectorAll('figure.chart svg').length > 0`)
		// The whole of it, also of what is longer than the window: its chart first.
		last := `[...document.querySelectorAll('[data-testid="thread"] figure.chart')].at(-1)`
		for _, scheme := range []string{"light", "dark"} {
			tab.Prefer(scheme)
			tab.See(`((` + last + `.closest('[data-ts]') ?? ` + last + `).scrollIntoView({block: 'start', behavior: 'instant'}), true)`)
			tab.Shot("costs-" + picture + "-" + scheme)
		}
		tab.Prefer("light")
	}
	ask("costs last 14 days by user", "U0GONE (deleted)", "by-user")
	ask("costs last 20 days by day", "Spend over time, by day", "by-day")
	ask("costs last 30 days by model for everyone", "Spend by model", "by-model")
	ask("costs", "This thread", "plain")
	tab.Click(`[data-testid="app-home"]`)
	tab.SeeText("main", "Projects, this month")
	for _, scheme := range []string{"light", "dark"} {
		tab.Prefer(scheme)
		tab.Shot("costs-home-" + scheme)
	}
}
