package slackui

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"deckhand/internal/slackui/render"
)

// reportDays is what a report covers when nothing else is said.
const reportDays = 30

// periodDays reads the number of days of a report; it is empty for the usual ones.
func periodDays(days string) (int, error) {
	if days == "" {
		return reportDays, nil
	}
	n, err := strconv.Atoi(days)
	if err != nil {
		return 0, fmt.Errorf("the period of the report: %w", err)
	}
	return n, nil
}

// approvalsReport says how long people waited for decisions, and how they were made.
// days is empty for the usual period.
func (a *App) approvalsReport(ctx context.Context, days string) (render.Page, error) {
	n, err := periodDays(days)
	if err != nil {
		return render.Page{}, err
	}
	report, err := a.c.Store.ApprovalsReport(ctx, a.self.TeamID, time.Now().AddDate(0, 0, -n), time.Now())
	if err != nil {
		return render.Page{}, err
	}
	return render.ApprovalReport(fmt.Sprintf("the last %d days", n), report), nil
}
