//go:build tools

// Package tools names the program that build.sh builds, so that go.mod pins it.
package tools

import _ "github.com/opencontainers/runc"
