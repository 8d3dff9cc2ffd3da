package gateway

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Judge says what of a call would not leave as it is.
func Judge(h http.Header, body []byte) (unknown []string) {
	for name := range h {
		ours := slices.ContainsFunc([]string{"Anthropic-", "X-Claude-", "X-Stainless-"}, func(p string) bool { return strings.HasPrefix(name, p) })
		if ours && name != betaHeader && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	for beta := range strings.SplitSeq(h.Get(betaHeader), ",") {
		if beta != "" && !slices.Contains(knownBetas, beta) {
			unknown = append(unknown, beta)
		}
	}
	if _, err := check(body); err != nil {
		unknown = append(unknown, err.Error())
	}
	return unknown
}

// SetLimits sets for how long a provider may be silent to nobody, an answer to nobody may
// take in all, and a caller may take nothing of its answer.
func (g *Gateway) SetLimits(silent, alone, taking time.Duration) {
	g.limits = limits{silent, alone, taking}
}
