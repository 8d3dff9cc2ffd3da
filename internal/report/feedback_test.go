package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/store/turns"
)

func TestWhatPeopleThink(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	found := turns.FeedbackReport{
		Projects: []turns.FeedbackStats{{Project: "web", Good: 2, Bad: 1}},
		Reasons: []turns.FeedbackReason{
			{Project: "web", ChannelID: "C1", ThreadTS: "1.000001", MessageTS: "1.000002", UserID: "U1", Reason: "=it\n\x1b[31mfailed", At: since},
			{Project: "web", ChannelID: "C1", ThreadTS: "1.000001", UserID: "U2", Good: true, Reason: "fine", At: since},
		},
	}
	f := NewFeedback("T1", since, since.AddDate(0, 1, 0), found, approvers{"U1": "山田"}, "https://t.slack.com/")
	var table, csv bytes.Buffer
	if err := f.Table(&table); err != nil {
		t.Fatal(err)
	}
	want := `Feedback since 2026-10-01 12:00 UTC

Project  Good  Bad
──────────────────
web         2    1

2026-10-01 12:00 UTC  bad  web, by 山田
  =it [31mfailed
  https://t.slack.com/archives/C1/p1000002

2026-10-01 12:00 UTC  good  web, by U2
  fine
  https://t.slack.com/archives/C1/p1000001
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	if err := f.CSV(&csv); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(csv.String(), "2026-10-01T12:00:00Z,web,C1,1.000001,1.000002,U1,山田,false,\"'=it\n") {
		t.Errorf("the file: %s", csv.String())
	}
	table.Reset()
	if err := NewFeedback("T1", since, since, turns.FeedbackReport{}, nil, "").Table(&table); err != nil || !strings.Contains(table.String(), "No answer has a rating") {
		t.Errorf("%v: %s", err, table.String())
	}
}
