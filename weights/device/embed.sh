#!/bin/sh
# Prints weights/device/kernel_source.c: block_kernels.cu, with the header that it includes in its place, as the bytes of a C string.
set -eu
folder=$(dirname "$0")
echo '/* Made by weights/device/embed.sh from block_kernels.cu and device_block.h: change those. */'
echo '#include "weights/device/kernel_source.h"'
echo
echo 'const char device_kernel_source[] = {'
sed -e "/^#include \"device_block.h\"$/ {
	r $folder/device_block.h
	d
}" "$folder/block_kernels.cu" | od -An -v -tu1 | sed -e 's/^ *//' -e 's/  */, /g' -e 's/^/	/' -e 's/$/,/'
echo '	0};'
