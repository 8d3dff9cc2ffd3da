package sandbox

import (
	"encoding/json"
	"fmt"
)

// The used part of a bundle's configuration, by the runtime specification of the Open Container Initiative.
type (
	ociConfig struct {
		Version  string     `json:"ociVersion"`
		Hostname string     `json:"hostname"`
		Root     ociRoot    `json:"root"`
		Process  ociProcess `json:"process"`
		Mounts   []ociMount `json:"mounts"`
		Linux    ociLinux   `json:"linux"`
	}
	ociRoot struct {
		Path     string `json:"path"`
		ReadOnly bool   `json:"readonly"`
	}
	// ociProcess has no capabilities: unnamed ones are not granted.
	ociProcess struct {
		User            ociUser     `json:"user"`
		Args            []string    `json:"args"`
		Env             []string    `json:"env"`
		Cwd             string      `json:"cwd"`
		Capabilities    struct{}    `json:"capabilities"`
		Rlimits         []ociRlimit `json:"rlimits"`
		NoNewPrivileges bool        `json:"noNewPrivileges"`
	}
	ociUser struct {
		UID int `json:"uid"`
		GID int `json:"gid"`
	}
	ociRlimit struct {
		Type string `json:"type"`
		Hard uint64 `json:"hard"`
		Soft uint64 `json:"soft"`
	}
	ociMount struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options,omitempty"`
	}
	ociLinux struct {
		Namespaces []ociNamespace `json:"namespaces"`
	}
	ociNamespace struct {
		Type string `json:"type"`
	}
)

func (c *ociConfig) namespace(name string) {
	c.Linux.Namespaces = append(c.Linux.Namespaces, ociNamespace{name})
}

// parts are the configuration's members, for [stage.GVisor] to complete.
func (c *ociConfig) parts() (out map[string]json.RawMessage, err error) {
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("write the bundle's configuration: %w", err)
	}
	return out, nil
}
