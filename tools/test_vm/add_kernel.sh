#!/bin/sh
# add_kernel.sh ROOT PACKAGE: a hook of mmdebstrap that puts the kernel that PACKAGE stands for into
# the folder ROOT, with its modules. It is unpacked, not installed: nobody boots from this disk, so
# the boot loader and initial RAM disk that installing would bring are of no use.
set -eu
root=$1
package=$2
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"

newest=$(apt-cache depends "$package" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
mkdir "$root/tmp/kernel"
cd "$root/tmp/kernel"
apt-get download -q "$newest"
dpkg-deb -x ./*.deb .
release=$(ls lib/modules)

mkdir -p "$root/usr/lib/modules"
mv "lib/modules/$release" "$root/usr/lib/modules/"
mv "boot/vmlinuz-$release" "$root/vmlinuz"
cp "$root/usr/lib/modules/$release/kernel/drivers/block/virtio_blk.ko.xz" "$root/"
cd /
rm -r "$root/tmp/kernel"
chroot "$root" depmod "$release"

# The smaller, the faster: nobody reads here.
rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" "$root/var/lib/apt/lists"
# Room for what tests write, and for where it is mounted.
mkdir -p "$root/opt/hearth"
