#!/bin/sh
# The machine's first process once its disk is there: what systemd would set up, as far as it
# concerns us, then one test program after the other. Never returns.
#
# Everything said here goes to the second serial line. The lines that the other end acts upon start
# with the word in /opt/hearth/secret, which no test knows.
exec </dev/null >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 raw
read -r secret </opt/hearth/secret
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
export HEARTH_BIN=/opt/hearth/bin LD_LIBRARY_PATH=/opt/hearth/lib
umask 022

finish() {
  echo "$secret finished $1"
  sync
  exec busybox poweroff -f
}

set_up() {
  mount -t proc -o nosuid,nodev,noexec proc /proc
  mount -t sysfs -o nosuid,nodev,noexec sys /sys
  # As systemd mounts it, and nothing of v1 anywhere.
  mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
  mkdir -p /dev/pts /dev/shm
  mount -t devpts -o mode=0620,gid=5,ptmxmode=0666 devpts /dev/pts
  mount -t tmpfs -o nosuid,nodev,mode=1777 shm /dev/shm
  mount -t tmpfs -o nosuid,nodev,mode=1777 tmp /tmp
  mount -t tmpfs -o nosuid,nodev,mode=0755 run /run
  ln -sf /proc/self/fd /dev/fd
  hostname test-vm
  ip link set lo up
  # Sandboxes may not load modules; a host has these loaded when it matters.
  modprobe -a overlay veth bridge nf_tables nft_ct nft_masq nft_nat nft_reject_inet nft_limit nft_log
  sysctl -q net.ipv4.ip_forward=1
  # Like a service: not in the root of the hierarchy, where everything is easier.
  mkdir -p /sys/fs/cgroup/system.slice/test-vm.service
  echo $$ >/sys/fs/cgroup/system.slice/test-vm.service/cgroup.procs
}

set -e
trap 'finish "badly: the machine could not be set up"' EXIT
set_up
set +e
trap - EXIT

echo "$secret machine Linux $(uname -r), cgroup controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
[ -f /opt/hearth/filter ] && GTEST_FILTER=$(cat /opt/hearth/filter) && export GTEST_FILTER
for program in /opt/hearth/tests/*; do
  name=${program##*/}
  echo "$secret begin $name"
  "$program" --gtest_color=no
  echo "$secret end $name $?"
done
finish well
