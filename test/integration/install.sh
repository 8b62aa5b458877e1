#!/usr/bin/env bash
# Installs what the integration and edge suites need beyond the workspace: a real model server by npm, and by Debian packages promtool, the
# proxies that ours is held against, the tools that attack it, and the browser that the playground is driven in.
# Fails if it cannot.
set -eu
cd "$(dirname "$0")/../.."

sh examples/real-model/install.sh

missing=()
command -v promtool >/dev/null || missing+=(prometheus)
command -v nginx >/dev/null || missing+=(nginx-light)
command -v haproxy >/dev/null || missing+=(haproxy)
command -v varnishd >/dev/null || missing+=(varnish)
command -v ffuf >/dev/null || missing+=(ffuf)
command -v nmap >/dev/null || missing+=(nmap)
command -v slowhttptest >/dev/null || missing+=(slowhttptest)
command -v dnsmasq >/dev/null || missing+=(dnsmasq-base)
command -v openssl >/dev/null || missing+=(openssl)
command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "integration: ${missing[*]} must be installed first; this system has no apt-get to do it" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  # the services are not started: tests run their own
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
  apt-get install -y -q --no-install-recommends "${missing[@]}" || { rm -f /usr/sbin/policy-rc.d; exit 1; }
  rm -f /usr/sbin/policy-rc.d
fi
