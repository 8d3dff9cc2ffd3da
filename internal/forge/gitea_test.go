package forge

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"

	"code.gitea.io/sdk/gitea"

	"deckhand/internal/freeport"
)

const giteaINI = `RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[database]
DB_TYPE = sqlite3
SQLITE_JOURNAL_MODE = WAL
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[1]s
ROOT_URL = http://127.0.0.1:%[1]s/
STATIC_ROOT_PATH = %[2]s
DISABLE_SSH = true
OFFLINE_MODE = true
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2$1$8
[service]
DISABLE_REGISTRATION = true
[actions]
ENABLED = false
[log]
LEVEL = Error
[cron]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
`

var aToken = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// TestGitea: the contract, kept by a real one (make test-forge).
func TestGitea(t *testing.T) {
	t.Parallel()
	program, static := os.Getenv("DECKHAND_TEST_GITEA"), os.Getenv("DECKHAND_TEST_GITEA_STATIC")
	if program == "" {
		t.Skip("make test-forge has a Gitea")
	}
	dir := t.TempDir()
	address, err := freeport.Address(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	ini := filepath.Join(dir, "app.ini")
	write(t, dir, map[string]string{"app.ini": fmt.Sprintf(giteaINI, port, static)})
	run := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, append(args, "--config", ini, "--work-path", dir)...)
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "USER=" + os.Getenv("USER")}
		return cmd
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := run(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("gitea %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	must("migrate")
	tokens := map[string]string{}
	for i, login := range []string{"ada", "deckhand", "grace", "mallory"} {
		create := []string{"admin", "user", "create", "--username", login, "--random-password", "--email", login + "@boathouse.example", "--must-change-password=false"}
		if i == 0 {
			create = append(create, "--admin")
		}
		must(create...)
		tokens[login] = aToken.FindString(must("admin", "user", "generate-access-token", "--username", login, "--token-name", "test", "--scopes", "all", "--raw"))
	}
	server := run("web")
	server.Stdout, server.Stderr = os.Stderr, os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the test's context has ended it
	root := "http://127.0.0.1:" + port
	until(t, "Gitea to answer", func() bool {
		response, err := http.Get(root + "/api/healthz") //nolint:noctx // a test
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	var last atomic.Int64
	contract(t, world{
		token: func(login string) string { return tokens[login] },
		make: func(t *testing.T) string {
			t.Helper()
			name := fmt.Sprintf("web%d", last.Add(1))
			api, err := gitea.NewClient(root, gitea.SetToken(tokens["ada"]), gitea.SetGiteaVersion(""))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := api.CreateRepo(gitea.CreateRepoOption{Name: name, DefaultBranch: "main"}); err != nil {
				t.Fatal(err)
			}
			for login, mode := range map[string]gitea.AccessMode{"deckhand": gitea.AccessModeWrite, "grace": gitea.AccessModeWrite, "mallory": gitea.AccessModeRead} {
				if _, err := api.AddCollaborator("ada", name, login, gitea.AddCollaboratorOption{Permission: &mode}); err != nil {
					t.Fatal(err)
				}
			}
			from := t.TempDir()
			gitIn(t, from, "init", "--quiet", "--initial-branch=main")
			write(t, from, firstFiles)
			gitIn(t, from, "add", "--all")
			gitIn(t, from, "commit", "--quiet", "--message=First")
			push, err := url.Parse(root + "/ada/" + name + ".git")
			if err != nil {
				t.Fatal(err)
			}
			address := push.String()
			push.User = url.UserPassword("ada", tokens["ada"])
			gitIn(t, from, "push", "--quiet", push.String(), "main")
			until(t, "Gitea to have seen the push", func() bool {
				repository, _, err := api.GetRepo("ada", name)
				return err == nil && !repository.Empty
			})
			return address
		},
	})
}
