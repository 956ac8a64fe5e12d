# Installs the Debian packages that a command needs; nothing when they are there. Sourced by ./goblin.

# packages_of GROUP: program (to build the programs), test, bench, demo.
packages_of() {
  case $1 in
    program)
      echo g++ cmake ninja-build pkg-config ccache mold ca-certificates \
        libhwy-dev libfmt-dev nlohmann-json3-dev libcli11-dev libzstd-dev libssl-dev libsqlite3-dev qt6-base-dev
      # Debian 12's Boost is 1.74 by default; Beast needs 1.81.
      if [ "$(debian_suite)" = bookworm ]; then echo libboost1.81-dev; else echo libboost-dev; fi
      ;;
    test) echo git clang clang-format libclang-rt-dev openssl python3 python3-numpy python3-cryptography iproute2 locales ;;
    bench) echo libdnnl-dev libopenblas-dev libopenblas0-pthread ;;
    demo) echo python3 python3-numpy libopenblas0-pthread ;;
  esac
}

debian_suite() {
  (. /etc/os-release && echo "${VERSION_CODENAME:-unknown}")
}

# missing_packages GROUP …
missing_packages() {
  local group package
  for group in "$@"; do
    for package in $(packages_of "$group"); do
      dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
    done
  done
}

# install_packages GROUP …
install_packages() {
  command -v dpkg-query >/dev/null || {
    echo "goblin: expected Debian 12 or 13, found a system without dpkg; CONTRIBUTING.md says how to build elsewhere" >&2
    return 1
  }
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      echo "goblin: expected root or sudo to install ${missing[*]}; found neither. Ask an administrator to install them." >&2
      return 1
    }
    as_root=(sudo)
  fi
  echo "goblin: installing ${missing[*]}" >&2
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "goblin: could not install ${missing[*]}; the lines above say why (all of them: $log)" >&2
    return 1
  fi
  rm -f "$log"
}
