#!/bin/sh
# Installs node-llama-cpp with the CPU build for this platform only: its optional packages would bring 700 MB of GPU builds.
set -eu
cd "$(dirname "$0")"
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) build=linux-x64 ;;
  Linux-aarch64) build=linux-arm64 ;;
  Darwin-arm64) build=mac-arm64-metal ;;
  Darwin-x86_64) build=mac-x64 ;;
  *) echo "real-model: there is no prebuilt CPU build of llama.cpp for $(uname -s) $(uname -m)" >&2; exit 1 ;;
esac
npm install --no-save --no-package-lock --ignore-scripts --omit=optional --no-audit --no-fund "@node-llama-cpp/$build@3.22.1"
