package costs

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/report"
)

// csvFile is an answer as a file.
func csvFile(v view.CostReport) (slack.UploadFileParameters, error) {
	var b bytes.Buffer
	if err := report.CSV(&b, v.Answer, v.Names); err != nil {
		return slack.UploadFileParameters{}, err
	}
	return slack.UploadFileParameters{Filename: fileName(v.Answer, "csv"), Title: view.CostTitle(v.Answer, v.Names), Content: b.String()}, nil
}

// chartFile is an answer's chart as a picture.
func chartFile(v view.CostReport) (slack.UploadFileParameters, error) {
	var b bytes.Buffer
	if err := report.PNG(&b, v.Answer, v.Names, false); err != nil {
		return slack.UploadFileParameters{}, err
	}
	return slack.UploadFileParameters{
		Filename: fileName(v.Answer, "png"), Title: view.CostTitle(v.Answer, v.Names), Content: b.String(),
		AltTxt: strings.Join(append([]string{"A bar chart."}, v.Answer.Summary()...), " "),
	}, nil
}

func fileName(a report.Answer, ending string) string {
	p := a.Question.Period
	return fmt.Sprintf("costs-%s-to-%s-by-%s.%s", p.From.Format(time.DateOnly), p.LastDay().Format(time.DateOnly), a.By, ending)
}
