/* The source of the kernels for devices, whole, for a compiler of CUDA C that is there at run time.
 * Made by weights/device/embed.sh. */
#ifndef WEIGHTS_DEVICE_KERNEL_SOURCE_H
#define WEIGHTS_DEVICE_KERNEL_SOURCE_H

extern const char device_kernel_source[];

#endif
