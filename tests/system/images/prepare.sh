#!/usr/bin/env bash
# Sets up what tests/system/test_containers.py needs, as root on Debian: podman with
# runc, podman-compose, an empty Debian and the base image that the Dockerfile names, from
# Debian's packages, since a registry of images may not be reachable.
set -euo pipefail
cd "$(dirname "$0")/../../.."
cache=${ROPEWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ropeway}/containers
mkdir -p "$cache"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    podman buildah runc netavark aardvark-dns iptables catatonit debootstrap
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

make_image docker.io/library/debian:bookworm ""
make_image "docker.io/library/$(awk '/^FROM python:/ { print $2; exit }' Dockerfile)" \
    python3,python3-venv,python3-pip,python3-dev,ca-certificates
