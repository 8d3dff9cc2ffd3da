package sandbox

import (
	"os"
	"slices"
	"strings"
)

// launcherNames are the variables read by programs that start something elsewhere: container engines, ssh, kubectl.
// They get no others of the bot's environment, which has the credentials of Slack and the database.
var launcherNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "DBUS_SESSION_BUS_ADDRESS",
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_API_VERSION",
	"CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINER_SSHKEY", "CONTAINERS_CONF", "CONTAINERS_REGISTRIES_CONF", "CONTAINERS_STORAGE_CONF",
	"SSH_AUTH_SOCK", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
}

// launcherEnviron is the environment of such a program.
func launcherEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !isLaunchers(name)
	})
}

func isLaunchers(name string) bool { return slices.Contains(launcherNames, name) }
