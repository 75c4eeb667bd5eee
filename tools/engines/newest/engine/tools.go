//go:build tools

// Package tools names the programs that build.sh builds, so that go.mod pins them.
package tools

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/moby/moby/v2/cmd/dockerd"
)
