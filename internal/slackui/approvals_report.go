package slackui

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// approvalsReportDays is what the report covers when nothing else is said.
const approvalsReportDays = 30

// approvalsReport says how long people waited for decisions, and how they were made.
// days is empty for the usual period.
func (a *App) approvalsReport(ctx context.Context, days string) (render.Page, error) {
	n := approvalsReportDays
	if days != "" {
		var err error
		if n, err = strconv.Atoi(days); err != nil {
			return render.Page{}, fmt.Errorf("the period of the report: %w", err)
		}
	}
	report, err := a.c.Store.ApprovalsReport(ctx, a.self.TeamID, time.Now().AddDate(0, 0, -n), time.Now())
	if err != nil {
		return render.Page{}, err
	}
	return render.ApprovalReport(render.ApprovalReportView{
		Period: fmt.Sprintf("the last %d days", n), Total: stats(report.Total), ByPerson: allStats(report.ByPerson), ByRule: allStats(report.ByRule), Feedback: report.Feedback,
	}), nil
}

func allStats(in []store.ApprovalStats) []render.ApprovalStats {
	out := make([]render.ApprovalStats, len(in))
	for i, s := range in {
		out[i] = stats(s)
	}
	return out
}

func stats(s store.ApprovalStats) render.ApprovalStats {
	return render.ApprovalStats(s)
}
