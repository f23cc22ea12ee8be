#!/bin/bash
# The image of rdna serve, built from packaging/oci/Containerfile and started, and examples/serve/kubernetes.yaml started by
# `podman kube play`, which reads Kubernetes' files; on the host, with the demo model: tests/containers.sh BUILD
# The base comes from Debian's archive, as its slim image does. What it needs: packaging/setup.sh packaging/container-packages.txt
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/.."
made=$(mktemp -d)
# Storage and networks of its own. Limits that a container asks for may be above what this process is allowed.
printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\n' >"$made/containers.conf"
export CONTAINERS_CONF=$made/containers.conf
podman() { command podman --root "$made/storage" --runroot "$made/run" --network-config-dir "$made/networks" "$@"; }
cleanup() {
  podman pod rm -af >/dev/null 2>&1 || true
  podman rm -af >/dev/null 2>&1 || true
  podman rmi -af >/dev/null 2>&1 || true
  podman volume rm -af >/dev/null 2>&1 || true
  podman network rm -f podman-default-kube-network >/dev/null 2>&1 || true
  rm -rf "$made"
}
trap cleanup EXIT
ready() { # address: waits until models are loaded
  for _ in $(seq 100); do
    curl -fsS "http://$1/ready" >/dev/null 2>&1 && return
    sleep 0.2
  done
  echo "containers: nothing is ready at $1" >&2
  return 1
}
written() { # address, header…: what the server writes
  local address=$1
  shift
  curl -fsS "http://$address/v1/completions" "$@" -d '{"model": "chat", "prompt": "And it came to pass", "max_tokens": 8, "temperature": 0}' |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["choices"][0]["text"])'
}
demo=examples/demo-model/rdna-demo-q8_0.gguf
want=$("$build/bin/rdna" run "$demo" "And it came to pass" --greedy --max-tokens 8 --device host --json |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["text"])')

echo "== the image"
mmdebstrap --variant=minbase --quiet bookworm "$made/base.tar"
podman import --quiet "$made/base.tar" "$(sed -n 's/^FROM //p' packaging/oci/Containerfile)"
mkdir -p "$made/context/build/dist/bin" "$made/context/build/dist/kernels" "$made/models"
cp "$build/bin/rdna" "$made/context/build/dist/bin/"
cp "$build"/kernels/*.rdnapack "$made/context/build/dist/kernels/"
podman build --quiet --network host -f packaging/oci/Containerfile -t rdna "$made/context"
cp "$demo" "$made/models/chat.gguf"
cp "$demo" "$made/models/coder.gguf"
echo '{"models": [{"path": "/models/chat.gguf", "name": "chat", "preload": true}]}' >"$made/models/models.json"
chmod -R a+rX "$made/models"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
container=$(podman run -d -v "$made/models:/models:ro" -p "127.0.0.1:$port:8080" rdna)
ready "127.0.0.1:$port"
[ "$(written "127.0.0.1:$port")" = "$want" ]
[ "$(podman exec "$container" id -un)" = rdna ]
podman stop -t 20 "$container" >/dev/null
[ "$(podman inspect -f '{{.State.ExitCode}}' "$container")" = 0 ]
podman rm "$container" >/dev/null

echo "== the Kubernetes example"
# This podman wants the image's whole name, no secret that may be missing, and leaves a secret's base64 as it is.
{
  printf 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: rdna-keys\ndata:\n  keys: c2VjcmV0LWtleQ==\n---\n'
  sed 's#image: rdna:latest#image: localhost/rdna:latest#; s#secretName: rdna-keys#secretName: rdna-keys, optional: false#' examples/serve/kubernetes.yaml
} >"$made/kubernetes.yaml"
podman volume create models >/dev/null
cp "$made"/models/*.gguf "$(podman volume inspect models -f '{{.Mountpoint}}')/"
podman kube play "$made/kubernetes.yaml" >/dev/null
pod=$(podman ps -q --filter name=rdna-pod-0-rdna)
address=$(podman inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$(podman ps -q --filter name=infra)"):8080
ready "$address"
[ "$(curl -s -o /dev/null -w '%{http_code}' "http://$address/v1/models")" = 401 ]
[ "$(written "$address" -H 'Authorization: Bearer c2VjcmV0LWtleQ==')" = "$want" ]
[ "$(podman exec "$pod" id -un)" = rdna ]
podman exec "$pod" sh -c '! touch /anything' 2>/dev/null
podman kube down "$made/kubernetes.yaml" >/dev/null
echo "the image and the example answer as rdna run does"
