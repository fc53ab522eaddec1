# Functions of the install scripts of all packages; packaging/build writes them into each script. Plain sh; systemd may be absent
# (images, chroots) or not running. Nothing here fails an installation for what systemd answers.

ceems_state=/var/lib/ceems-replaced # from before the package of CEEMS 0.10.2 is removed until ours is installed

ceems_systemd_runs() { [ -d /run/systemd/system ]; }

# ceems_variable ceems_exporter -> CEEMS_EXPORTER
ceems_variable() { echo "$1" | tr a-z A-Z; }

# Before the files are unpacked: is a package of CEEMS 0.10.2 there, whose own scripts stop and disable the service when they remove it?
ceems_remember() {
  for ceems_unit in "/usr/lib/systemd/system/$1.service" "/lib/systemd/system/$1.service"; do
    if grep -qs "^ExecStart=/usr/local/bin/$1" "$ceems_unit" && [ -x "/usr/local/bin/$1" ]; then
      mkdir -p "$ceems_state"
      echo replaced >"$ceems_state/$1"
      for ceems_link in /etc/systemd/system/*.wants/"$1.service"; do
        if [ -L "$ceems_link" ]; then echo enabled >>"$ceems_state/$1"; fi
      done
      if ceems_systemd_runs && systemctl -q is-active "$1.service"; then echo active >>"$ceems_state/$1"; fi
    fi
  done
}

ceems_was() { grep -qs "^$2\$" "$ceems_state/$1"; }

ceems_user() {
  if command -v systemd-sysusers >/dev/null 2>&1; then
    systemd-sysusers ceems.conf
  fi
  # Images without systemd.
  getent group ceems >/dev/null 2>&1 || groupadd --system ceems
  getent passwd ceems >/dev/null 2>&1 || useradd --system --gid ceems --home-dir /var/lib/ceems --no-create-home --shell /usr/sbin/nologin ceems
  if command -v systemd-tmpfiles >/dev/null 2>&1; then
    systemd-tmpfiles --create ceems.conf || :
  else
    mkdir -p /var/log/ceems && chown root:ceems /var/log/ceems && chmod 2770 /var/log/ceems
  fi
}

# Where the service listens and its flags: written once, never changed afterwards.
ceems_default() { # PROGRAM "PORT..."
  [ ! -e "/etc/default/$1" ] || return 0
  mkdir -p /etc/default
  ceems_listen=
  if ceems_was "$1" replaced; then
    ceems_why="# As with CEEMS 0.10.2, which was installed before, the service listens on all addresses."
  else
    ceems_why="# Only this machine can reach the service. Empty the variable when /etc/$1/web-config.yml has a password or TLS, or when
# the network is trusted: the service then listens on all addresses."
    for ceems_port in $2; do ceems_listen="$ceems_listen --web.listen-address=127.0.0.1:$ceems_port"; done
  fi
  cat >"/etc/default/$1" <<END
# Environment of $1.service. Flags: man $1
$ceems_why
$(ceems_variable "$1")_LISTEN="${ceems_listen# }"
# $(ceems_variable "$1")_OPTIONS=
END
}

# After everything is in place. `new` for a first installation, else an upgrade.
ceems_settle() { # PROGRAM new|upgrade
  command -v systemctl >/dev/null 2>&1 || { rm -f "$ceems_state/$1"; return 0; }
  if ceems_systemd_runs; then systemctl daemon-reload || :; fi
  if ceems_was "$1" replaced; then
    # What the unit of CEEMS 0.10.2 was allowed to do.
    if [ -e "/usr/share/ceems/systemd/$1.service.d/as-ceems-0.10.conf" ]; then
      mkdir -p "/etc/systemd/system/$1.service.d"
      ln -sf "/usr/share/ceems/systemd/$1.service.d/as-ceems-0.10.conf" "/etc/systemd/system/$1.service.d/as-ceems-0.10.conf"
      if ceems_systemd_runs; then systemctl daemon-reload || :; fi
    fi
    if ceems_was "$1" enabled; then systemctl --no-reload -q enable "$1.service" || :; fi
    if ceems_was "$1" active && ceems_systemd_runs; then systemctl restart "$1.service" || :; fi
  elif [ "$2" = new ]; then
    systemctl --no-reload -q preset "$1.service" || :
    if ceems_systemd_runs && systemctl -q is-enabled "$1.service"; then systemctl start "$1.service" || :; fi
  elif ceems_systemd_runs; then
    systemctl try-restart "$1.service" || :
  fi
  rm -f "$ceems_state/$1"
  rmdir "$ceems_state" 2>/dev/null || :
}

ceems_stop() { # before removal
  command -v systemctl >/dev/null 2>&1 || return 0
  if ceems_systemd_runs; then systemctl stop "$1.service" || :; fi
  systemctl --no-reload -q disable "$1.service" || :
}
