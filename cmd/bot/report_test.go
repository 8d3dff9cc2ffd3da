package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"deckhand/internal/report"
	"deckhand/internal/store"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/waittest"
)

// program runs the program as people do, in a folder without a configuration.
func program(t *testing.T, env []string, args ...string) (out, errOut string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append((&world{}).environ(), "DECKHAND_CONFIG="), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// TestReportsOfADemo: the same questions as in Slack, answered in the terminal, from
// what was really spent.
func TestReportsOfADemo(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `prices:
  "*": {input: 1, output: 2, cache_read: 0.1, cache_write_5m: 1.25, cache_write_1h: 2, web_search: 0.02}
`)
	thread := w.post(linus, eng, "", "@deckhand go\ntool: Bash {\"command\":\"echo x >> ran\"}\nsay: finished")
	card := w.card(eng, thread)
	w.click(grace, eng, card.TS, "approve")
	w.done(eng, thread, thread)
	spent := w.count(`SELECT sum(micro_usd)::bigint FROM ledger`)
	contract := w.count(`SELECT sum(contract_micro_usd)::bigint FROM ledger`)
	wantContract := w.count(`SELECT sum(floor(input_tokens + 2 * output_tokens + 0.1 * cache_read_tokens + 1.25 * cache_write_5m_tokens + 2 * cache_write_1h_tokens + 20000 * web_searches + 0.5))::bigint FROM ledger`)
	if spent <= 0 || contract != wantContract || contract == 0 {
		t.Fatalf("the ledger has %d µ$, %d by contract; want %d", spent, contract, wantContract)
	}
	env := []string{
		"DATABASE_URL=" + w.DatabaseURL, "SLACK_BOT_TOKEN=" + w.BotToken, "SLACK_API_URL=" + w.SlackAPIURL,
		"DECKHAND_CONFIG=" + filepath.Join(w.dir, "deckhand.yaml"),
	}
	ok := func(args ...string) string {
		t.Helper()
		out, errOut, code := program(t, env, append([]string{"report"}, args...)...)
		if code != 0 || errOut != "" {
			t.Fatalf("bot report %q: exit %d\n%s%s", args, code, out, errOut)
		}
		return out
	}

	// Not today: midnight may come between.
	table := ok("last", "7", "days", "by", "user")
	for _, want := range []string{"Costs of", "Linus Engineer", "Contract", "1 turn", "1 approved tool call", "#engineering"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
	var answer struct {
		By    string `json:"by"`
		Total struct {
			MicroUSD int64 `json:"micro_usd"`
			Contract int64 `json:"contract_micro_usd"`
		} `json:"total"`
		Lines []struct{ Key, Name string } `json:"lines"`
	}
	if err := json.Unmarshal([]byte(ok("--format", "json", "last", "7", "days", "by", "user")), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.By != "user" || answer.Total.MicroUSD != spent || answer.Total.Contract != contract || answer.Lines[0].Key != linus || answer.Lines[0].Name == linus {
		t.Errorf("json: %+v; the ledger has %d and %d µ$", answer, spent, contract)
	}
	rows, err := csv.NewReader(strings.NewReader(ok("last", "7", "days", "by", "model", "as", "csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sum, column := int64(0), slices.Index(rows[0], "micro_usd")
	for _, r := range rows[1:] {
		n, err := strconv.ParseInt(r[column], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if sum != spent {
		t.Errorf("the csv's lines are %d µ$, the ledger has %d", sum, spent)
	}
	picture := filepath.Join(t.TempDir(), "costs.png")
	if out := ok("last", "7", "days", "--out", picture, "--format", "png", "--dark"); out != "" {
		t.Errorf("it also printed %q", out)
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it only reads
	if img, err := png.Decode(f); err != nil || img.Bounds().Dx() != 1600 {
		t.Errorf("the picture: %v", err)
	}

	if out := ok("verify"); !strings.Contains(out, fmt.Sprintf("all %d checks agree", ledger.Checks())) {
		t.Errorf("verify: %s", out)
	}
	if out := ok("approvals", "--since", "1d"); !strings.Contains(out, "Grace Approver") || !strings.Contains(out, "100%") || !strings.Contains(out, "1 decided in") {
		t.Errorf("approvals:\n%s", out)
	}
	if out := ok("approvals", "--format", "csv"); !strings.HasPrefix(out, "group,id,name,decisions,allowed,") || !strings.Contains(out, "\nperson,"+grace+",Grace Approver,1,1,0,0,1,") {
		t.Errorf("approvals as csv:\n%s", out)
	}
	var approving struct {
		Lines []report.ApprovalLine `json:"lines"`
	}
	if err := json.Unmarshal([]byte(ok("approvals", "--format", "json")), &approving); err != nil || len(approving.Lines) != 3 || approving.Lines[2].Group != "rule" {
		t.Errorf("approvals as json: %+v, %v", approving, err)
	}
	w.metricsAgree(spent, contract)

	// Whoever changes the database is found out.
	if err := w.tamper(`SET session_replication_role = replica; UPDATE ledger_daily SET micro_usd = micro_usd + 1`); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := program(t, env, "report", "verify")
	if code != 1 || !strings.Contains(out, "ledger_daily") || !strings.Contains(out, "should be {\"micro_usd\":") || !strings.Contains(errOut, "not right") {
		t.Errorf("verify of changed books: exit %d\n%s%s", code, out, errOut)
	}
}

// metricsAgree scrapes the running bot.
func (w *world) metricsAgree(spent, contract int64) {
	w.t.Helper()
	log, err := os.ReadFile(filepath.Join(w.dir, "bot.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	listen := regexp.MustCompile(`"listen": ?"([0-9.:]+)"`).FindSubmatch(log)
	if listen == nil {
		w.t.Fatal("the bot's log does not say where it listens")
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), waittest.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+string(listen[1])+"/metrics", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // the body is read whole
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^(deckhand_\w+)(\{.*\})? (\S+)$`).FindAllStringSubmatch(string(body), -1) {
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			w.t.Fatal(err)
		}
		sums[m[1]] += v
	}
	for name, want := range map[string]int64{"deckhand_spend_usd_total": spent, "deckhand_contract_spend_usd_total": contract} {
		if got := int64(sums[name]*1e6 + 0.5); got != want {
			w.t.Errorf("%s is %d µ$, the ledger has %d", name, got, want)
		}
	}
	for name, want := range map[string]float64{
		"deckhand_turns_total": 1, "deckhand_approvals_pending": 0, "deckhand_approval_wait_seconds_count": 1, "deckhand_sessions_live": 1,
		"deckhand_inbox_pending": 0, "deckhand_build_info": 1, "deckhand_scrape_errors_total": 0,
	} {
		if got, ok := sums[name]; !ok || got != want {
			w.t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, secret := range []string{linus, grace, eng} {
		if bytes.Contains(body, []byte(secret)) {
			w.t.Errorf("the metrics name %s", secret)
		}
	}
}

func TestReportsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	empty := "DATABASE_URL=" + storetest.URL(t)
	two := storetest.URL(t)
	db := storetest.Open(t, two, store.Options{})
	for _, team := range []string{"T1", "T2"} {
		book(t, db, team)
	}
	url := "DATABASE_URL=" + two
	unpriced := deckhandYAML(t, minimal+`prices: {"claude-*": {input: 3, output: 15, cache_read: 0.3, cache_write_5m: 3.75, cache_write_1h: 6, web_search: 0.01}}`)
	for _, tt := range []struct {
		name string
		env  string
		args []string
		code int
		want string // on either side
	}{
		{"an empty ledger", empty, nil, 0, "Nothing was spent."},
		{"an empty ledger as json", empty, []string{"--format", "json"}, 0, `"lines": []`},
		{"nobody asked", empty, []string{"approvals"}, 0, "Nobody was asked about anything."},
		{"no database", "A=b", nil, 1, "DATABASE_URL: set it"},
		{"no database to verify", "A=b", []string{"verify"}, 1, "DATABASE_URL: set it"},
		{"a word that is none", url, []string{"--team", "T1", "frobnicate"}, 2, "I don't know “frobnicate”"},
		{"me", url, []string{"--team", "T1", "for", "me"}, 2, "I do not know who “me” is here"},
		{"days of one month", url, []string{"--team", "T1", "1-5", "November", "2020"}, 0, "Costs of 1–5 November 2020"},
		{"something else", url, []string{"--team", "T1", "for", "project", "'; DROP TABLE ledger; --"}, 2, "There is no project “DROP”."},
		{"a project that is not there", url, []string{"--team", "T1", "project", "wbe"}, 2, "There is web."},
		{"a period in the future", url, []string{"--team", "T1", "2999-01"}, 2, "That time has not begun."},
		{"two teams", url, nil, 2, "has the teams T1, T2: choose one with --team"},
		{"another team", url, []string{"--team", "T3"}, 2, `nothing of a team "T3"`},
		{"one of them", url, []string{"--team", "T2"}, 0, "$0.000001"},
		{"verify of all", url, []string{"verify"}, 0, "checks agree"},
		{"verify of another", url, []string{"verify", "--team", "T3"}, 2, `nothing of a team "T3"`},
		{"a format", url, []string{"--format", "pdf"}, 2, `"pdf" is no format here; write table, csv, json, png`},
		{"a format for approvals", url, []string{"approvals", "--format", "png"}, 2, `"png" is no format here`},
		{"two formats", url, []string{"--team", "T1", "as", "csv", "--format", "json"}, 2, "asks for csv"},
		{"dark words", url, []string{"--dark"}, 2, "--dark is for --format png"},
		{"a flag of another's", url, []string{"verify", "--since", "3d"}, 2, "unknown flag: --since; see bot report verify -h"},
		{"an unknown flag", url, []string{"--fromat", "csv"}, 2, "unknown flag: --fromat; did you mean --format? see bot report -h"},
		{"a word to verify", url, []string{"verify", "everything"}, 2, `the argument "everything" is one too many`},
		{"a time that is none", url, []string{"approvals", "--since", "soon"}, 2, `"soon" is no time`},
		{"a time to come", url, []string{"approvals", "--team", "T1", "--since", "2999-01-01"}, 2, "has not begun yet"},
		{"a zone that is none", url, []string{"--team", "T1", "--zone", "Berlin"}, 2, `"Berlin" is no time zone`},
		{"a zone", url, []string{"--team", "T1", "--zone", "Pacific/Auckland", "yesterday"}, 0, "Costs of"},
		{"a configuration that is not there", url, []string{"--config", "/nowhere.yaml"}, 1, "there is no file /nowhere.yaml"},
		{"a model without a price", url, []string{"--team", "T1", "--config", unpriced}, 0, "No contract price for m."},
		{"a folder that is not there", url, []string{"--team", "T1", "--out", "/nowhere/x.csv"}, 1, "--out:"},
		{"reconcile with a person", url, []string{"reconcile", "last month by user"}, 2, "a period and nothing else"},
		{"reconcile without a key", url, []string{"reconcile"}, 1, "ANTHROPIC_ADMIN_KEY: set it"},
		{"reconcile against nothing", url, []string{"reconcile", "--against", "hope"}, 2, `"hope" is no prices`},
		{"help", url, []string{"-h"}, 0, "Usage:\n  bot report [question]..."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, errOut, code := program(t, []string{tt.env}, append([]string{"report"}, tt.args...)...)
			if code != tt.code || !strings.Contains(out+errOut, tt.want) {
				t.Errorf("exit %d, want %d and %q\n%s%s", code, tt.code, tt.want, out, errOut)
			}
			if strings.Contains(errOut, ": usage") {
				t.Errorf("the error ends in our own words: %s", errOut)
			}
		})
	}
}

func TestWordsAndFlagsMayStandInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"last month --format csv by user", "csv|last month by user"},
		{"--format=csv 2026-10-01 - 2026-10-03", "csv|2026-10-01 - 2026-10-03"},
		{"by user -- --format csv", "|by user --format csv"},
		{"", "|"},
	} {
		c, got := reportCommand(), ""
		c.RunE = func(c *cobra.Command, words []string) error {
			got = c.Flag("format").Value.String() + "|" + strings.Join(words, " ")
			return nil
		}
		c.SetArgs(strings.Fields(tt.args))
		if err := c.Execute(); err != nil || got != tt.want {
			t.Errorf("%q: %q, %v; want %q", tt.args, got, err, tt.want)
		}
	}
}

func TestAPictureIsNotForATerminal(t *testing.T) {
	t.Parallel()
	terminal := openTerminal(t)
	var errOut bytes.Buffer
	if code := run([]string{"report", "--format", "png"}, terminal, &errOut); code != 2 || !strings.Contains(errOut.String(), "--out costs.png") {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}

// book has a turn of the team make a call of the model m, which costs a micro-USD.
func book(t *testing.T, db *store.Store, team string) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key := threads.ThreadKey{TeamID: team, ChannelID: "C1", ThreadTS: "1.1"}
	envelope, _, err := db.Receive(ctx, inbox.Envelope{EventID: team, Kind: inbox.Message, TeamID: team, ChannelID: "C1", TS: "1.1", ThreadTS: "1.1", UserID: "U1", Payload: []byte(`{}`)})
	check(err)
	th, _, err := db.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: envelope, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go"})
	check(err)
	th, _, err = storetest.Acquire(ctx, db, th.ID, "A")
	check(err)
	c := ledger.OpenCall{ID: uuid.New(), Lease: threads.Lease{ThreadID: th.ID, Owner: "A", Epoch: th.LeaseEpoch}, SessionID: uuid.NewString(), Model: "m", StartedAt: time.Now()}
	check(db.NewSession(ctx, c.Lease, c.SessionID, ""))
	c.Epoch, err = db.BeginEpoch(ctx, c.Lease, c.SessionID, "v", 0)
	check(err)
	turn, _, _, err := db.BeginTurn(ctx, c.Lease, c.SessionID, c.Epoch)
	check(err)
	check(db.BeginCall(ctx, c))
	check(db.EndCalls(ctx, []ledger.EndedCall{{OpenCall: c, Status: 200, Complete: true, EndedAt: time.Now(), Usage: ledger.CallUsage{Model: "m", Input: 1, Output: 1, MicroUSD: 1}}}))
	_, _, err = db.FinishTurn(ctx, c.Lease, store.FinishedTurn{ID: turn.ID, State: "done", CLITotals: []ledger.CLITotal{{SessionID: c.SessionID, Epoch: c.Epoch, Before: 0, After: 1, Model: "m"}}})
	check(err)
}
