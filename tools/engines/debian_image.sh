#!/bin/bash
# A Debian image with Python, from Debian's packages alone: no registry is asked.
#
#   tools/engines/debian_image.sh [CACHE]     prints the path of a tar for `docker import -`
#
# CACHE (default: .cache/engines in the checkout) keeps it; cold about a minute, 150 MB. The
# release is this machine's, so that programs of this machine's Python run in it. Needs root and
# debootstrap. Progress goes to stderr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${1:-$here/../../.cache/engines}
. /etc/os-release
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
image=$cache/debian-$VERSION_CODENAME-python.tar

exec 9>"$cache/.debian.lock"
flock 9
if [ ! -f "$image" ]; then
  work=$(mktemp -d "$cache/.debian.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  # The mirror is the one that apt uses here.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: '"$VERSION_CODENAME" | head -n 1)
  echo "installing Debian $VERSION_CODENAME with Python" >&2
  nice debootstrap --variant=minbase --include=python3-minimal,libpython3-stdlib \
    "$VERSION_CODENAME" "$work/root" "$mirror" >&2
  rm -rf "$work/root"/var/cache/apt/* "$work/root"/var/lib/apt/lists/* "$work/root"/usr/share/{doc,man,locale}
  tar -C "$work/root" -c . >"$work/image.tar"
  mv "$work/image.tar" "$image"
fi
echo "$image"
