#!/bin/bash
# Build the newest Docker engine (it has CDI; Debian's 20.10 has not) from Go modules alone.
#
#   tools/engines/build_newest_docker.sh [CACHE]      prints the folder that holds the programs
#
# CACHE (default: .cache/engines in the checkout) gets one folder a set of versions, named by a
# hash of what pins them; a finished folder is never built again. Cold, on 2 cores: about 3
# minutes, half a minute where Go's own build cache is warm. Needs Go >= 1.26, gcc, pkg-config and
# libseccomp-dev (runc filters system calls through it). Progress goes to stderr.
#
# Debian's own runc (1.1.5) is too old for this engine: "namespace {time} does not exist".
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${1:-$here/../../.cache/engines}
pins=$(cat "$here"/newest/*/go.mod "$here"/newest/*/go.sum <(grep -v "^#" "${BASH_SOURCE[0]}") | sha256sum | cut -c1-16)
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
done_folder=$cache/newest-docker-$pins

if [ -x "$done_folder/dockerd" ]; then
  echo "$done_folder"
  exit 0
fi
command -v go >/dev/null || { echo "Go is missing: it builds the engine; install Go 1.26 or newer" >&2; exit 1; }
pkg-config --exists libseccomp || { echo "libseccomp-dev is missing: apt-get install libseccomp-dev pkg-config" >&2; exit 1; }

# One builder at a time; the one that waited finds the folder done.
exec 9>"$cache/.newest-docker.lock"
flock 9
if [ ! -x "$done_folder/dockerd" ]; then
  work=$(mktemp -d "$cache/.building.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  export GOFLAGS=-mod=readonly\ -buildvcs=false
  build() { # MODULE-FOLDER CGO PACKAGE FLAGS...
    local folder=$1 cgo=$2 package=$3
    shift 3
    echo "building $package" >&2
    (cd "$here/newest/$folder" && CGO_ENABLED=$cgo nice -n 19 go build -trimpath -o "$work/" "$@" "$package" >&2)
  }
  build runc 1 github.com/opencontainers/runc -tags seccomp -ldflags "-s -w"
  no_drivers=no_btrfs,no_devmapper,no_zfs
  build engine 0 github.com/containerd/containerd/v2/cmd/containerd -tags $no_drivers -ldflags "-s -w"
  build engine 0 github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 -tags $no_drivers -ldflags "-s -w"
  # Without a version the engine calls itself "library-import" and clients cannot compare it.
  build engine 0 github.com/moby/moby/v2/cmd/dockerd \
    -ldflags "-s -w -X github.com/moby/moby/v2/dockerversion.Version=29.0.0"
  chmod 0755 "$work"
  mv "$work" "$done_folder"
  trap - EXIT
fi
echo "$done_folder"
