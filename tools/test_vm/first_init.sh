#!/bin/busybox sh
# The first process of the machine, in its initial RAM disk: finds the disk, and puts what is to be
# tested beside what Debian brought.
/bin/busybox mkdir -p /dev /new
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox insmod /virtio_blk.ko || exec /bin/busybox poweroff -f
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 100 ]; do
  /bin/busybox sleep 0.1
  tries=$((tries + 1))
done
# ext4 reads ext2; it is what real hosts have, and unlike ext2 can be mounted with mapped owners.
/bin/busybox mount -t ext4 /dev/vda /new || exec /bin/busybox poweroff -f
/bin/busybox mount -t tmpfs -o mode=0755 payload /new/opt/hearth
/bin/busybox cp -a /payload/. /new/opt/hearth/
/bin/busybox mount --move /dev /new/dev
exec /bin/busybox switch_root /new /opt/hearth/init
