package agent

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"deckhand/internal/agent/place"
	"deckhand/internal/sandbox"
	"deckhand/internal/workspace"
)

// A CLAUDE.md that goes into the system prompt has at most maxInstructions bytes, and all of them allInstructions: the
// prompt is one argument of the CLI's, which Linux bounds to 128 KiB.
const (
	maxInstructions = 40 << 10
	allInstructions = 2 * maxInstructions
)

func systemPrompt(p place.Project, dir string) (string, error) {
	left := allInstructions
	md, err := instructions(dir, &left)
	if err != nil {
		return "", err
	}
	parts := []string{
		"You are working for a team through Slack: your text appears in a Slack thread, several people may write to you, and tools may need a person's approval, which can take a while or be refused with a reason. Keep answers short and readable in a chat.",
	}
	if md != "" {
		parts = append(parts, "The workspace's CLAUDE.md:\n\n"+md)
	}
	if folder := p.Folder(dir); folder != dir {
		if md, err = instructions(folder, &left); err != nil {
			return "", err
		}
		if md != "" {
			parts = append(parts, "The CLAUDE.md of "+p.Subdir+":\n\n"+md)
		}
		parts = append(parts, "You work in "+p.Subdir+", a folder of the repository in "+dir+". git's sparse checkout has it and the files of the folders above; git sparse-checkout add FOLDER brings another, by its path from there.")
	}
	further, err := furtherRepositories(p, dir, &left)
	if err != nil {
		return "", err
	}
	parts = append(parts, further...)
	if list := skillList(p.Skills); list != "" {
		parts = append(parts, list)
	}
	if reaches := network(p); reaches != "" {
		parts = append(parts, reaches)
	}
	if p.ReachesForge() {
		parts = append(parts, "git reaches the project's forge, whatever the network: git fetch origin works, and so does pushing to branches below deckhand/, as in git push origin HEAD:deckhand/name, once it is allowed. Run git push as a command of its own.")
	}
	if p.OpensPulls() {
		parts = append(parts, "When the work is to become a pull request, commit it and call the tool open_pull_request of the server deckhand, with a title and a text for reviewers; it pushes, too. read_pull_request says how it stands. Merge only when somebody asks for it.")
		if len(p.Further) > 0 {
			parts = append(parts, "Each repository with work of yours gets a pull request of its own: name a further repository to these tools as repository.")
		}
	}
	if p.Preview.Run != "" {
		parts = append(parts, "When your work has changed how the project's page looks, call the tool preview of the server deckhand once it is done, and before you open a pull request: people see the page before and after.")
	}
	if p.AppendSystemPrompt != "" {
		parts = append(parts, p.AppendSystemPrompt)
	}
	return strings.Join(parts, "\n\n"), nil
}

// furtherRepositories tells of the project's further repositories in a workspace.
func furtherRepositories(p place.Project, dir string, left *int) (parts []string, err error) {
	for _, q := range p.All()[1:] {
		at := workspace.Within(dir, q.Of)
		parts = append(parts, "The project's repository "+q.Of+" is in "+at+", a working tree of its own on a branch of the same name as here. Commit there what belongs there; cd there for its git. It is saved and restored like the rest.")
		md, err := instructions(at, left)
		if err != nil {
			return nil, err
		}
		if md != "" {
			parts = append(parts, "The CLAUDE.md of "+q.Of+":\n\n"+md)
		}
	}
	return parts, nil
}

// instructions is the workspace's CLAUDE.md, which the CLI does not load itself
// when it reads user settings only. A link that leads out of the workspace is
// not followed. left bounds it as well, and is reduced by its length.
func instructions(workspace string, left *int) (string, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return "", err
	}
	defer root.Close()                                                      //nolint:errcheck // it only reads
	f, err := root.OpenFile("CLAUDE.md", os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold the thread
	if err != nil {
		return "", nil // it is not there, or leads out of the workspace
	}
	defer f.Close() //nolint:errcheck // it only reads
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
	if err != nil {
		return "", fmt.Errorf("read CLAUDE.md: %w", err)
	}
	md := strings.ReplaceAll(strings.ToValidUTF8(string(b), "�"), "\x00", "�") // an argument has none
	if most := min(maxInstructions, *left); len(md) > most {
		md = strings.ToValidUTF8(md[:most], "") + "\n[CLAUDE.md is longer and was cut here: read the file for the rest.]"
	}
	*left = max(0, *left-len(md))
	return md, nil
}

// network tells the model what it reaches: programs show little of why they do not.
func network(p place.Project) string {
	const around = "Do not try to get around it; say which host you would have needed, and for what."
	hosts := strings.Join(p.Sandbox.Domains, ", ")
	switch p.Sandbox.Network {
	case sandbox.Domains:
		return "The network here reaches these hosts and no others, by the proxy that the environment names: " + hosts +
			". Everything else is refused (status 403). " + around
	case sandbox.Ask:
		known := "The network here is reached by the proxy that the environment names. "
		if hosts != "" {
			known += "These hosts are reached at once: " + hosts + ". "
		}
		return known + "When a program connects to any other host, a person is asked about it, and the connection waits meanwhile, which can take minutes: give the command time. Status 403 says that it was refused, and why; where it says that nobody has decided yet, try again later. Between two messages nobody can be asked. " + around
	}
	return ""
}
