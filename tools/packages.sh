# Installs the Debian packages that building, testing and the benches need. Sourced by ./goblin.

suite_packages() {
  . /etc/os-release
  case ${VERSION_CODENAME:-} in
    bookworm) echo libboost1.81-dev libclang-rt-14-dev ;;
    *) echo libboost-dev libclang-rt-19-dev ;;
  esac
}

required_packages() {
  echo g++ cmake ninja-build pkg-config ccache mold git ca-certificates \
    libhwy-dev libfmt-dev nlohmann-json3-dev libcli11-dev libzstd-dev libssl-dev libsqlite3-dev qt6-base-dev \
    clang clang-format openssl python3 python3-numpy python3-cryptography iproute2 \
    libdnnl-dev libopenblas-dev libopenblas0-pthread "$(suite_packages)"
}

install_packages() {
  local missing=() package
  for package in $(required_packages); do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      echo "goblin: expected root or sudo to install: ${missing[*]}; found neither. Ask an administrator to install them." >&2
      return 1
    }
    as_root=(sudo)
  fi
  echo "goblin: installing ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "goblin: could not install ${missing[*]}; the lines above say why (whole log: $log)" >&2
    return 1
  fi
  rm -f "$log"
}
