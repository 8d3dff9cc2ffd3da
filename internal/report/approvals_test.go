package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/store/approvals"
)

type approvers map[string]string

func (a approvers) UserName(id string) (name string, deleted bool) { return a[id], false }
func (a approvers) ChannelName(string) string                      { return "" }

func TestHowATeamDecides(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	found := approvals.Report{
		Total:    approvals.Stats{Allowed: 2, Denied: 1, Expired: 1, Quick: 1, Median: 1500 * time.Millisecond, P95: 3 * time.Minute},
		ByPerson: []approvals.Stats{{Name: "U1", Allowed: 2, Denied: 1, Quick: 1, Median: 1500 * time.Millisecond, P95: 3 * time.Minute}},
		ByRule:   []approvals.Stats{{Name: "=deploys", Expired: 1}},
	}
	a := NewApprovals("T1", since, since.AddDate(0, 1, 0), found, approvers{"U1": "山田"})
	var table, csv bytes.Buffer
	if err := a.Table(&table); err != nil {
		t.Fatal(err)
	}
	want := `Approvals since 2026-10-01 12:00 UTC
3 decided in 1.5 s (median) and 3 min 0 s (95 %), 1 of them within 2 s; 1 expired

Person  Decisions  Allowed  Median       95 %  ≤ 2 s
────────────────────────────────────────────────────
山田            3      67%   1.5 s  3 min 0 s      1

Rule      Decisions  Allowed  Median   95 %  ≤ 2 s
──────────────────────────────────────────────────
=deploys          0        –   0.0 s  0.0 s      0
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	if err := a.CSV(&csv); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"person,U1,山田,3,2,1,0,0.666667,1.5,180,1\n", "\nrule,'=deploys,,0,0,0,1,0,0,0,0\n"} {
		if !strings.Contains(csv.String(), line) {
			t.Errorf("the file has no %q:\n%s", line, csv.String())
		}
	}
	table.Reset()
	if err := NewApprovals("T1", since, since, approvals.Report{}, nil).Table(&table); err != nil || !strings.Contains(table.String(), "Nobody was asked") {
		t.Errorf("%v: %s", err, table.String())
	}
}
