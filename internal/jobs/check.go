package jobs

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"deckhand/internal/store/pg"
)

// tables are River's tables that a client reads and writes.
var tables = []string{"river_job", "river_leader", "river_queue", "river_notification"}

// check reports whether the queue works with this database and role. Its errors have a cure.
func check(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("no answer in %s", checkTimeout))
	defer cancel()
	found, err := pg.Collect[tableState](pool.Query(ctx, `
		SELECT t.name AS table, current_user::text AS role, to_regclass(t.name) IS NOT NULL AS there,
			COALESCE(string_agg(p.name, ', ' ORDER BY p.at) FILTER (WHERE NOT has_table_privilege(to_regclass(t.name), p.name)), '') AS lacks
		FROM unnest($1::text[]) t(name), unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) WITH ORDINALITY p(name, at)
		GROUP BY t.name ORDER BY t.name`, tables))
	if err != nil {
		return fmt.Errorf("look at the job queue's tables: %w", err)
	}
	var missing missingError
	var lacking grantError
	for _, t := range found {
		switch {
		case !t.There:
			missing = append(missing, t.Table)
		case t.Lacks != "":
			lacking = append(lacking, t)
		}
	}
	switch {
	case missing != nil:
		return missing
	case lacking != nil:
		return lacking
	}
	return nil
}

type tableState struct {
	Table, Role string
	There       bool
	Lacks       string // privileges
}

// missingError lists tables that are missing or invisible.
type missingError []string

// Error implements error.
func (e missingError) Error() string {
	return "the database has no " + strings.Join(e, ", ")
}

// Cure says what to do about it.
func (missingError) Cure() string { return "run `bot migrate up`" }

// grantError lists tables on which the bot's role lacks privileges.
type grantError []tableState

// Error implements error.
func (e grantError) Error() string {
	var out []string
	for _, t := range e {
		out = append(out, t.Lacks+" on "+t.Table)
	}
	return "the role " + e[0].Role + " has no right to " + strings.Join(out, ", ")
}

// Cure says what to do about it.
func (e grantError) Cure() string {
	var out []string
	for _, t := range e {
		out = append(out, "GRANT "+t.Lacks+" ON "+t.Table+" TO "+pgx.Identifier{t.Role}.Sanitize()+";")
	}
	return "as the owner of the tables: " + strings.Join(out, " ")
}
