package claude

import (
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// Usage is a running total: of a process since it started, or since the
// session began, as [Process.Baseline] and [Result] report it.
type Usage struct {
	// TotalMicroUSD is millionths of a US dollar, rounded from the CLI's float.
	TotalMicroUSD int64
	// Models is by the model's full name.
	Models map[string]ModelUsage
}

// ModelUsage is one model's share of a Usage, or of a difference of two.
type ModelUsage struct {
	Input, Output, CacheRead int64
	// CacheWrite is everything written to the cache; CacheWrite5m and
	// CacheWrite1h are its parts where the CLI tells them apart.
	CacheWrite, CacheWrite5m, CacheWrite1h int64
	WebSearches                            int64
	MicroUSD                               int64
}

// microUSD rounds dollars to millionths.
func microUSD(usd float64) int64 {
	if math.IsNaN(usd) || math.Abs(usd) > 1e12 {
		return 0
	}
	return int64(math.Round(usd * 1e6))
}

func readModelUsage(dec *jsontext.Decoder, u *ModelUsage) error {
	var in struct {
		InputTokens, OutputTokens, CacheReadInputTokens, CacheCreationInputTokens int64
		CacheCreationEphemeral5mInputTokens, CacheCreationEphemeral1hInputTokens  int64
		WebSearchRequests                                                         int64
		CostUSD                                                                   float64
	}
	err := unmarshalNext(dec, &in)
	*u = ModelUsage{
		Input: in.InputTokens, Output: in.OutputTokens, CacheRead: in.CacheReadInputTokens, CacheWrite: in.CacheCreationInputTokens,
		CacheWrite5m: in.CacheCreationEphemeral5mInputTokens, CacheWrite1h: in.CacheCreationEphemeral1hInputTokens,
		WebSearches: in.WebSearchRequests, MicroUSD: microUSD(in.CostUSD),
	}
	return err
}
