package pg_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/waittest"
)

func TestAURLIsCheckedWithoutQuotingIt(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	for _, tt := range []struct{ name, url, want string }{
		{"none", "", "set it to the database"},
		{"a slash", "postgres://u:" + canary + "/x@h:5432/d", "%2F for /"},
		{"a slash behind a number", "postgres://u:123/" + canary + "@h:5432/d", "%2F for /"},
		{"a slash and a question mark", "postgres://u:" + canary + "/x?y@h:5432/d", "%2F for /"},
		{"an at sign", "postgres://u:" + canary + "@x@h/d", "%40 for @"},
		{"all of them", "postgres://u:" + canary + "@x/%y@h/d", "%40 for @, %2F for /, %25 for %"},
		{"a space", "postgres://u:" + canary + " y@h/d?application_name=a@b", "write %20 for a space"},
		{"no host", "postgres://u:" + canary, "not a PostgreSQL URL"},
		{"a percent sign", "postgres://u:" + canary + "%zz@h/d", "%25 for %"},
		{"a port that is none", "postgres://u:" + canary + "@h:54x/d", "not a PostgreSQL URL; write postgres://"},
		{"a TLS mode that is none", "postgres://u:" + canary + "@h/d?sslmode=maybe", "sslmode is invalid"},
		{"a certificate that is not there", "postgres://u:" + canary + "@h/d?sslrootcert=/nowhere.pem", "/nowhere.pem"},
		{"words", "host=h password=" + canary + " port=x", "not a PostgreSQL URL"},
		{"another database", "mysql://u:" + canary + "@h/d", "not a PostgreSQL URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := pg.CheckURL(tt.url)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
	for _, good := range []string{
		"postgres://u:p%2F%23x@h:5432/d?sslmode=disable", "postgres://u:p#?x@h/d?application_name=a@b", "postgres://h/d?application_name=a@b", "postgresql:///d?host=/run/postgresql", "host=h dbname=d",
	} {
		if err := pg.CheckURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// Every way in which a database cannot be used, on the real one: a sentence that names
// the place, with what to do, and no password. Both ways to open it say the same.
func TestWhyTheDatabaseCannotBeUsed(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	good := storetest.URL(t)
	cfg, err := pgx.ParseConfig(good)
	if err != nil {
		t.Fatal(err)
	}
	locked, _ := storetest.Role(t, good, "")
	full, _ := storetest.Role(t, good, "CONNECTION LIMIT 0")
	address := storetest.TCP(t, good)
	demandPassword(t, good, locked, "postgres://"+locked+"@"+address+"/"+cfg.Database+"?sslmode=disable")
	silent := storetest.Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	webServer := storetest.Listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1<<10))
		_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	})
	const free = "127.0.0.1:1"

	for _, tt := range []struct{ name, url, want, cure string }{
		{"a wrong password", "postgres://" + locked + ":" + canary + "@" + address + "/" + cfg.Database + "?sslmode=disable", `refuses the password of user "` + locked + `"`, "@ %40"},
		{"a user that is not there", "postgres://nobody_here:" + canary + "@" + address + "/" + cfg.Database + "?sslmode=disable", `refuses user "nobody_here"`, "correct the user"},
		{"a database that is not there", "postgres://" + cfg.User + ":" + canary + "@" + address + "/nowhere?sslmode=disable", `has no database "nowhere"`, "create the database"},
		{"no connection left", "postgres://" + full + ":" + canary + "@" + address + "/" + cfg.Database + "?sslmode=disable", "has no connection left", "CONNECTION LIMIT"},
		{"TLS where there is none", "postgres://" + cfg.User + ":" + canary + "@" + address + "/" + cfg.Database + "?sslmode=require", "speaks no TLS", "sslmode=disable"},
		{"a host that is not there", "postgres://u:" + canary + "@nowhere.invalid/d", `the host "nowhere.invalid" cannot be found`, "correct the host"},
		{"a port where nothing listens", "postgres://u:" + canary + "@" + free + "/d", "nothing listens at " + free, "start PostgreSQL"},
		{"a socket that is not there", "postgres:///d?host=/nowhere&user=u&password=" + canary, "nothing listens at /nowhere", "start PostgreSQL"},
		{"no answer", "postgres://u:" + canary + "@" + silent + "/d?connect_timeout=1", "does not answer", "firewall"},
		{"something else", "postgres://u:" + canary + "@" + webServer + "/d?sslmode=disable", "the connection to PostgreSQL at " + webServer + " fails", "host and port"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := store.Open(t.Context(), tt.url, store.Options{})
			_, migrating := pg.MigrationStatus(t.Context(), tt.url)
			for _, err := range []error{err, migrating} {
				why, ok := errors.AsType[*pg.UnreachableError](err)
				if !ok {
					t.Fatalf("error %v", err)
				}
				if !strings.Contains(err.Error(), tt.want) || !strings.Contains(why.Cure(), tt.cure) || pg.Cure(err) != why.Cure() {
					t.Errorf("error %v\nwant %q, and %q", err, tt.want, tt.cure)
				}
				if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "SQLSTATE") || strings.Contains(err.Error(), "\n") {
					t.Errorf("the error is not for people: %v", err)
				}
			}
		})
	}
}

// demandPassword lets a role in by password alone, and waits until the server does.
func demandPassword(t *testing.T, dsn, role, as string) {
	t.Helper()
	storetest.Exec(t, dsn, `COPY (SELECT 'local all `+role+` scram-sha-256')
		TO PROGRAM 'cat - pg_hba.conf > pg_hba.new && mv pg_hba.new pg_hba.conf'`)
	storetest.Exec(t, dsn, `SELECT pg_reload_conf()`)
	for deadline := time.Now().Add(waittest.Limit); ; time.Sleep(20 * time.Millisecond) {
		in, err := pgx.Connect(t.Context(), as)
		if err != nil {
			return
		}
		_ = in.Close(t.Context())
		if time.Now().After(deadline) {
			t.Fatal("the server demands no password")
		}
	}
}

// TestSettingsOfThePool in the URL are for the pool alone: whoever opens the database
// takes them, and PostgreSQL never hears of them.
func TestSettingsOfThePool(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	sign := "?"
	if strings.Contains(url, "?") {
		sign = "&"
	}
	if _, err := pg.MigrateUp(t.Context(), url+sign+"pool_max_conns=3"); err != nil {
		t.Errorf("migrate: %v", err)
	}
	if _, err := pg.ParsePool(url+sign+"pool_max_conns=c4n4ry", false); err == nil || !strings.Contains(err.Error(), "pool_max_conns=10") || strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("a setting that is none: %v", err)
	}
}

// A server that takes no writes, a standby, is none for a bot; whoever only reads may.
func TestAStandbyIsNoServerForABot(t *testing.T) {
	t.Parallel()
	owner := storetest.URL(t)
	_, url := storetest.Role(t, owner, "")
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, owner, `ALTER ROLE `+cfg.User+` SET default_transaction_read_only = on`)
	_, err = store.Open(t.Context(), url, store.Options{Replica: "replica-1"})
	if err == nil || !strings.Contains(err.Error(), "takes no writes") || !strings.Contains(pg.Cure(err), "promote a standby") {
		t.Errorf("a bot: %v", err)
	}
	s, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatalf("whoever reads: %v", err)
	}
	s.Close()
}
