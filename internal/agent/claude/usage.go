package claude

import "math"

// Usage is a running total: of a process since it started, or since the
// session began, as [Process.Baseline] and [Result] report it.
type Usage struct {
	// TotalMicroUSD is millionths of a US dollar, rounded from the CLI's float.
	TotalMicroUSD int64
	// Models are each model's share of it, by the model's full name.
	Models map[string]int64
}

// costs are a running total as the CLI writes it.
type costs struct {
	TotalCostUSD float64
	ModelUsage   map[string]struct{ CostUSD float64 }
}

func (c costs) usage() Usage {
	u := Usage{TotalMicroUSD: microUSD(c.TotalCostUSD), Models: make(map[string]int64, len(c.ModelUsage))}
	for name, m := range c.ModelUsage {
		u.Models[name] = microUSD(m.CostUSD)
	}
	return u
}

// microUSD rounds dollars to millionths.
func microUSD(usd float64) int64 {
	if math.IsNaN(usd) || math.Abs(usd) > 1e12 {
		return 0
	}
	return int64(math.Round(usd * 1e6))
}
